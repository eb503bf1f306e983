//! Input that a silent task waits for. A task is looked at when it becomes stale and, on request, after a
//! silence of its own choice; then again, each time after twice the silence, until there is output.

use super::{Effect, Life};
use crate::task::{EventKind, Moment, Monotonic};

impl Life {
    /// The time of the next look, unless there was output meanwhile.
    pub(super) fn next_input_look(&self) -> Option<Monotonic> {
        let span = self.task.spec.input?.notify_after?;
        let started = self.task.attempt_started()?;
        let since = started.max(self.last_output.unwrap_or_default());
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

    /// A task that was given input needs none, unless the next look finds that it waits again.
    pub(super) fn input_given(&mut self) -> Vec<Effect> {
        if self.task.stop.is_some() || self.task.needs_input.take().is_none() {
            return Vec::new();
        }
        vec![Effect::Record(EventKind::Active)]
    }

    pub(super) fn input_awaited(&mut self, now: Moment) -> Vec<Effect> {
        let task = &mut self.task;
        let is_over = task.stop.is_some() || task.next_attempt().is_some();
        if is_over || task.needs_input.is_some() || self.tree_ended.is_some() {
            return Vec::new();
        }
        task.needs_input = Some(now.wall);
        vec![Effect::Record(EventKind::NeedsInput), Effect::FollowOutput]
    }
}
