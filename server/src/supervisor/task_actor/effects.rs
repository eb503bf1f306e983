//! Inputs of the state machine, and the effects that follow.

use std::sync::Arc;

use super::TaskActor;
use crate::{
    crash,
    journal::JournalError,
    supervisor::lifecycle::{Effect, Input},
    task::{EventKind, Moment},
};

impl TaskActor {
    /// Applies an input. Its event is recorded before its effects are carried out if the disk permits;
    /// if not, the effects do not wait for the record.
    pub(super) async fn apply(&mut self, input: Input) {
        for effect in self.step(input) {
            self.carry_out(effect).await;
        }
    }

    fn step(&mut self, input: Input) -> Vec<Effect> {
        self.life.see_worker(self.channels.worker.look());
        self.life.step(input, Moment::now())
    }

    /// Applies an input that has no effect without a record: if it cannot be recorded, nothing changes.
    pub(super) async fn apply_or_undo(&mut self, input: Input) -> Result<(), Arc<JournalError>> {
        self.record_backlog().await?;
        let before = self.life.clone();
        for effect in self.step(input) {
            match effect {
                Effect::Record(kind) => {
                    if let Err(error) = self.record_now(kind).await {
                        self.life = before;
                        return Err(error);
                    }
                }
                Effect::Signal(_)
                | Effect::Kill
                | Effect::StopChildren
                | Effect::Spill
                | Effect::Abandon
                | Effect::AwaitAttempt
                | Effect::BeginAttempt
                | Effect::FollowOutput
                | Effect::Probe
                | Effect::LookForInput => self.carry_out(effect).await,
            }
        }
        Ok(())
    }

    async fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Record(EventKind::Ended) => self.record_end().await,
            Effect::Record(kind) => self.record(kind).await,
            Effect::Signal(signal) => self.signal(signal).await,
            Effect::Kill => self.kill().await,
            Effect::StopChildren => self.stop_children(),
            Effect::Spill => self.spill().await,
            Effect::Abandon => self.abandon_orphans().await,
            Effect::AwaitAttempt => self.await_attempt().await,
            Effect::BeginAttempt => self.order_attempt().await,
            Effect::FollowOutput => self.follow_output(self.life.task.output_bytes).await,
            Effect::Probe => self.begin_look(),
            Effect::LookForInput => self.look_for_input(),
        }
    }

    /// Records the end. The tree is empty, so the admission is freed first: a client that sees the
    /// end can take the slot. Queued tasks that were admitted because of it start after the record, or
    /// without it where the disk refuses it.
    async fn record_end(&mut self) {
        self.end_look().await;
        self.end_kept_shim().await;
        let admitted = self.shared.registry.free_admission(&self.life.task.id);
        self.life.task.stored_bytes = self.stored_output();
        self.record(EventKind::Ended).await;
        crash::point("queue.freed");
        admitted.notify();
    }
}
