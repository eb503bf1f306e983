//! Inputs of the state machine, and the effects that follow.

use super::TaskActor;
use crate::{
    journal::JournalError,
    supervisor::{
        STORAGE_RETRY,
        lifecycle::{Effect, Input},
    },
    task::{EventKind, Moment},
};

impl TaskActor {
    /// Applies a fact. A fact cannot be refused: while it cannot be recorded, the actor retries and
    /// does nothing else.
    pub(super) async fn apply(&mut self, input: Input) {
        for effect in self.life.step(input, Moment::now()) {
            while let Err(error) = self.carry_out(effect).await {
                let task = &self.life.task.id;
                tracing::error!(%task, %error, "cannot record an event; will retry");
                self.reply_to_failed_spawn();
                tokio::time::sleep(STORAGE_RETRY).await;
                if self.shared.is_shutting_down() {
                    return;
                }
            }
        }
    }

    /// Applies a request. If it cannot be recorded, the request fails and changes nothing.
    pub(super) async fn apply_or_undo(&mut self, input: Input) -> Result<(), JournalError> {
        let before = self.life.clone();
        for effect in self.life.step(input, Moment::now()) {
            if let Err(error) = self.carry_out(effect).await {
                self.life = before;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Fails only where an event cannot be recorded.
    async fn carry_out(&mut self, effect: Effect) -> Result<(), JournalError> {
        match effect {
            Effect::Record(EventKind::Ended) => self.record_end().await?,
            Effect::Record(kind) => {
                let event = self.record(kind).await?;
                self.publish(&event);
                self.reply_to_spawn(event);
            }
            Effect::Signal(signal) => self.signal(signal).await,
            Effect::Kill => self.kill().await,
            Effect::StopChildren => self.stop_children(),
            Effect::Spill => self.spill().await,
            Effect::Abandon => self.abandon_orphans().await,
            Effect::FollowOutput => self.follow_output(self.life.task.output_bytes).await,
        }
        Ok(())
    }
}
