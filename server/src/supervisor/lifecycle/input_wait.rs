//! Input that a silent task waits for. A task is looked at when it becomes stale and, on request, after a
//! silence of its own choice; then again, each time after twice the silence, until there is output.

use super::{Effect, Life};
use crate::task::{EventKind, Moment, Monotonic};

impl Life {
    /// The time of the next look, unless there was output meanwhile.
    pub(super) fn next_input_look(&self) -> Option<Monotonic> {
        let span = self.task.spec.input?.notify_after?;
        let started = self.task.started.as_ref()?;
        let since = started.at.mono.max(self.last_output.unwrap_or_default());
        let silence = span.saturating_mul(1 << self.input_looks.min(30));
        let is_known = self.task.needs_input.is_some();
        (!is_known).then(|| since.saturating_add(silence))
    }

    /// Orders a look if the task was silent until now.
    pub(super) fn input_look_due(
        &mut self,
        last_output: Option<Monotonic>,
        output_bytes: u64,
        now: Moment,
    ) -> Vec<Effect> {
        if last_output > self.last_output {
            self.last_output = last_output;
            self.input_looks = 0;
        }
        if self.next_input_look().is_none_or(|due| now.mono < due) {
            return Vec::new();
        }
        self.input_looks += 1;
        self.task.output_bytes = self.task.output_bytes.max(output_bytes);
        vec![Effect::LookForInput]
    }

    pub(super) fn input_awaited(&mut self, now: Moment) -> Vec<Effect> {
        let task = &mut self.task;
        if task.stop.is_some() || task.needs_input.is_some() || self.tree_ended.is_some() {
            return Vec::new();
        }
        task.needs_input = Some(now.wall);
        vec![Effect::Record(EventKind::NeedsInput), Effect::FollowOutput]
    }
}
