//! What comes from a task that is held: its output, the release, and what it writes after that.

use std::io;

use heeler_client::{AttachEnded, AttachItem, Chunk, Error, v1::AttachEndReason};

use super::{Answer, Hold, Role};
use crate::{
    drain::{Drain, Drained, Patience},
    exit::Failure,
    farewell, out,
};

impl Hold {
    pub(super) fn take(&mut self, item: Option<Result<AttachItem, Error>>) -> Result<(), Failure> {
        let item = item.ok_or(Error::Incomplete { field: "ended" })?;
        let item = item.inspect_err(|_| self.lost_sight())?;
        self.progress.found = true;
        match item {
            AttachItem::Ended(ended) => self.ended(ended),
            AttachItem::Output(chunk) => self.output(chunk)?,
            AttachItem::Attached(_) => self.flow.put(&item)?,
        }
        Ok(())
    }

    /// Whose command it is knows that there is such a task; another knows it once something came of it.
    fn lost_sight(&self) {
        match self.role {
            Role::Visitor if !self.progress.found => {}
            Role::Owner(_) | Role::Visitor => {
                let id = self.task.id();
                out::note(&format!(
                    "{id} is out of sight, and may go on: `heeler attach {id}`"
                ));
            }
        }
    }

    fn output(&mut self, chunk: Chunk) -> io::Result<()> {
        self.progress.offset = chunk.end();
        self.flow.put(&AttachItem::Output(chunk))
    }

    /// Where those who outlive the leader are not to live on, their end is waited for; where they may,
    /// whose command it is still sees what they write at once.
    fn ended(&mut self, ended: AttachEnded) {
        if ended.reason == AttachEndReason::LeaderExited {
            let near = farewell::is_near(&ended.task);
            match self.role {
                Role::Owner(_) => {
                    let patience = if near {
                        Patience::End
                    } else {
                        Patience::Moment
                    };
                    self.rest = Some(Drain::from(&self.task, self.progress.offset, patience));
                }
                Role::Visitor if near => self.await_end(),
                Role::Visitor => {}
            }
        }
        self.progress.ended = Some(ended);
    }

    pub(super) fn drained(&mut self, rest: Drained) -> Result<(), Failure> {
        let over = match rest {
            Drained::Chunk(chunk) => return Ok(self.output(chunk)?),
            Drained::Over => true,
            Drained::Enough => false,
        };
        self.rest = None;
        let ended = self.progress.ended.as_ref();
        if over || ended.is_some_and(|ended| farewell::is_near(&ended.task)) {
            self.await_end();
        }
        Ok(())
    }

    fn await_end(&mut self) {
        let task = self.task.clone();
        self.calls
            .spawn(async move { Answer::Ended(task.wait().await) });
    }
}

/// The next of what comes late; never, where nothing is expected.
pub(super) async fn next(rest: &mut Option<Drain>) -> Drained {
    match rest {
        Some(rest) => rest.next().await,
        None => std::future::pending().await,
    }
}
