//! The state that a task's worker shares with the actor: the signs of life, and the one place for a
//! connected worker.
//!
//! A heartbeat is a store to memory. It wakes no actor: when the lease or a silence is due, the actor looks
//! here and sleeps on if there was one.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::{Notify, futures::Notified};
use uuid::Uuid;

use crate::{
    supervisor::lifecycle::{Connection, WorkerSeen},
    task::Monotonic,
};

/// The number of one connection of a worker to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::supervisor) struct SessionNumber(u64);

/// A sign of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    /// The work goes on.
    Activity,
    /// The worker is there.
    Presence,
}

/// The right of a worker to take the place of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TakeOver {
    Yes,
    No,
}

/// The link of one task.
#[derive(Debug, Default)]
pub(in crate::supervisor) struct WorkerLink {
    /// Microseconds of the monotonic clock; 0: never.
    heard: AtomicU64,
    active: AtomicU64,
    asked: AtomicU64,
    /// The number of the newest message that was put since the server began.
    newest_message: AtomicU64,
    place: Mutex<Place>,
    changed: Notify,
}

/// The place of the connected worker.
#[derive(Debug, Default)]
struct Place {
    /// The latest connection.
    session: SessionNumber,
    worker: Option<Uuid>,
    connection: Connection,
}

/// Another worker is connected.
#[derive(Debug)]
pub(in crate::supervisor) struct Occupied;

impl WorkerLink {
    /// Takes the place for a worker: a new one, or one that comes back.
    pub(in crate::supervisor) fn join(
        &self,
        worker: Option<Uuid>,
        take_over: TakeOver,
    ) -> Result<(Uuid, SessionNumber), Occupied> {
        let id = worker.unwrap_or_else(Uuid::now_v7);
        let session = {
            let mut place = self.place();
            match (place.connection, take_over) {
                (Connection::Connected, TakeOver::No) if place.worker != Some(id) => {
                    return Err(Occupied);
                }
                (Connection::Connected, TakeOver::Yes | TakeOver::No) | (Connection::None, _) => {}
            }
            place.session.0 += 1;
            place.worker = Some(id);
            place.connection = Connection::Connected;
            place.session
        };
        self.note(Sign::Presence);
        self.changed.notify_waiters();
        Ok((id, session))
    }

    /// Gives the place back, unless another connection has it. The lease counts from here.
    pub(in crate::supervisor) fn leave(&self, session: SessionNumber) {
        let mut place = self.place();
        if place.session == session {
            place.connection = Connection::None;
            drop(place);
            self.note(Sign::Presence);
        }
    }

    /// Reports whether no later connection has taken the place.
    pub(in crate::supervisor) fn is_current(&self, session: SessionNumber) -> bool {
        self.place().session == session
    }

    pub(in crate::supervisor) fn note(&self, sign: Sign) {
        let now = Monotonic::now().0;
        self.heard.store(now, Ordering::Relaxed);
        match sign {
            Sign::Activity => self.active.store(now, Ordering::SeqCst),
            Sign::Presence => {}
        }
    }

    /// Notes that a worker without a connection asks whether to stop.
    pub(in crate::supervisor) fn note_question(&self) {
        self.asked.store(Monotonic::now().0, Ordering::Relaxed);
        self.note(Sign::Presence);
    }

    pub(in crate::supervisor) fn look(&self) -> WorkerSeen {
        WorkerSeen {
            connection: self.place().connection,
            heard: at(&self.heard),
            active: at(&self.active),
            asked: at(&self.asked),
        }
    }

    /// Announces a message to the connected worker.
    pub(in crate::supervisor) fn announce_message(&self, number: u64) {
        self.newest_message.fetch_max(number, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    pub(in crate::supervisor) fn newest_message(&self) -> u64 {
        self.newest_message.load(Ordering::SeqCst)
    }

    /// Completes at the next message or change of the place. To be enabled before the state is looked at.
    pub(in crate::supervisor) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// No code that can panic runs under the lock.
    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn at(time: &AtomicU64) -> Option<Monotonic> {
    let micros = time.load(Ordering::SeqCst);
    (micros > 0).then_some(Monotonic(micros))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// P3
    #[test]
    fn a_second_worker_is_refused_while_the_first_is_connected() {
        let link = WorkerLink::default();
        let (first, session) = link.join(None, TakeOver::No).unwrap();
        assert!(link.join(None, TakeOver::No).is_err());
        link.leave(session);
        let (second, _) = link.join(None, TakeOver::No).unwrap();
        assert_ne!(first, second);
    }

    /// P3
    #[test]
    fn the_same_worker_and_one_that_takes_over_get_the_place() {
        let link = WorkerLink::default();
        let (id, broken) = link.join(None, TakeOver::No).unwrap();
        let (again, session) = link.join(Some(id), TakeOver::No).unwrap();
        assert_eq!(id, again);
        assert!(link.is_current(session) && !link.is_current(broken));
        link.leave(broken);
        assert_eq!(
            link.look().connection,
            Connection::Connected,
            "it left late"
        );
        let (other, _) = link.join(None, TakeOver::Yes).unwrap();
        assert_ne!(other, id);
        assert!(!link.is_current(session));
    }

    /// T4
    #[test]
    fn a_sign_of_presence_is_no_activity() {
        let link = WorkerLink::default();
        link.note(Sign::Presence);
        assert!(link.look().heard.is_some() && link.look().active.is_none());
        link.note(Sign::Activity);
        assert!(link.look().active.is_some());
    }
}
