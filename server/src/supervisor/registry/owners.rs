//! Owners of sessions: when the last one is gone and none comes back in time, the session's live tasks are
//! cancelled.
//!
//! ```text
//! not owned ──own──> owned ──last owner leaves──> left ──window over──> ending ──tasks stopped──> not owned
//!                      ^                           │ own                  │ own
//!                      └───────────────────────────┴──────────────────────┘
//! ```
//!
//! An owned session has a row in the journal and a keeper, a future that watches its number of owners. The row is
//! written before the first owner is told, and deleted after the cancels are recorded, so the death of the server
//! and of the owners at any moment leaves a row, and the next server a keeper that waits for owners.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::watch, task::JoinSet, time::sleep};

use crate::supervisor::{CancelRequest, Cascade, Handle, JobGuard, Supervisor};
use crate::{
    crash,
    journal::JournalError,
    task::{Actor, Filter, StopCause, TaskId},
};

/// The most sessions with owners: a client could own one after the other with a long window.
const MAX_OWNED: usize = 10_000;
/// The pause before the row of a session that has ended is deleted again, on a disk that refused it.
const DELETE_AGAIN: Duration = Duration::from_secs(2);

#[derive(Debug, thiserror::Error)]
pub(crate) enum OwnError {
    #[error("limit of sessions with owners reached: {0}")]
    TooMany(usize),
    #[error("cannot record the owner of the session")]
    Journal(#[from] JournalError),
}

/// The sessions that have a keeper.
#[derive(Debug, Default)]
pub(in crate::supervisor) struct OwnedSessions {
    by_id: Mutex<HashMap<String, watch::Sender<Owners>>>,
    /// Serialises the records, so that the deletion of a row does not undo a return.
    records: tokio::sync::Mutex<()>,
}

/// The owners of a session.
#[derive(Debug, Clone, Copy)]
struct Owners {
    present: usize,
    /// The number of arrivals: the window begins again with each.
    arrivals: u64,
    reattach_window: Duration,
}

/// One owner of a session, until it is dropped.
#[derive(Debug)]
pub(crate) struct SessionOwner {
    owners: Option<watch::Sender<Owners>>,
}

impl SessionOwner {
    fn arrive(owners: &watch::Sender<Owners>, reattach_window: Duration) -> Self {
        owners.send_modify(|owners| {
            owners.present += 1;
            owners.arrivals += 1;
            owners.reattach_window = reattach_window;
        });
        Self {
            owners: Some(owners.clone()),
        }
    }

    /// Keeps the owner counted: the server shuts down, and the owner has not left. The next server decides
    /// whether it comes back.
    pub(crate) fn leave_to_next_server(&mut self) {
        self.owners = None;
    }
}

impl Drop for SessionOwner {
    fn drop(&mut self) {
        if let Some(owners) = &self.owners {
            owners.send_modify(|owners| owners.present -= 1);
        }
    }
}

impl OwnedSessions {
    /// Nothing under the lock panics half-way through a change, so a poisoned lock is usable.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<Owners>>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn owners(&self, session_id: &str) -> Option<Owners> {
        let sessions = self.lock();
        sessions.get(session_id).map(|owners| *owners.borrow())
    }
}

impl Supervisor {
    /// Adds an owner to a session. The ownership is durable when this returns. It completes even if the caller
    /// disconnects, and the owner is then gone at once.
    pub(crate) async fn own_session(
        &self,
        session_id: String,
        reattach_window: Duration,
    ) -> Result<SessionOwner, OwnError> {
        let this = self.clone();
        let owned = tokio::spawn(async move {
            let _one_at_a_time = this.shared.owned_sessions.records.lock().await;
            this.record_owner(&session_id, reattach_window).await
        });
        owned
            .await
            .unwrap_or(Err(OwnError::Journal(JournalError::Closed)))
    }

    /// The number of owners of a session; `None` if it is not owned.
    pub(crate) fn owners(&self, session_id: &str) -> Option<usize> {
        let owners = self.shared.owned_sessions.owners(session_id)?;
        Some(owners.present)
    }

    /// Waits for the owners of the sessions that an earlier server has left.
    pub(in crate::supervisor) async fn take_over_sessions(&self) -> Result<(), JournalError> {
        for (session_id, window) in self.journal().owned_sessions().await? {
            let owners = self.keep_session(&session_id, window);
            self.shared.owned_sessions.lock().insert(session_id, owners);
        }
        Ok(())
    }

    async fn record_owner(
        &self,
        session_id: &str,
        reattach_window: Duration,
    ) -> Result<SessionOwner, OwnError> {
        let sessions = &self.shared.owned_sessions;
        let recorded = sessions.owners(session_id);
        if recorded.is_none() && sessions.lock().len() >= MAX_OWNED {
            return Err(OwnError::TooMany(MAX_OWNED));
        }
        if recorded.map(|owners| owners.reattach_window) != Some(reattach_window) {
            let session_id = session_id.to_owned();
            let recorded = self.journal().set_owned(session_id, Some(reattach_window));
            recorded.await?;
            crash::point("owner.recorded");
        }
        let mut sessions = sessions.lock();
        let owners = sessions.entry(session_id.to_owned());
        let owners = owners.or_insert_with(|| self.keep_session(session_id, reattach_window));
        Ok(SessionOwner::arrive(owners, reattach_window))
    }

    /// Starts the keeper of a session.
    fn keep_session(&self, session_id: &str, reattach_window: Duration) -> watch::Sender<Owners> {
        let owners = watch::Sender::new(Owners {
            present: 0,
            arrivals: 0,
            reattach_window,
        });
        let keeper = Keeper {
            supervisor: self.clone(),
            session_id: session_id.to_owned(),
            owners: owners.subscribe(),
        };
        let job = JobGuard::new(&self.shared);
        tokio::spawn(async move {
            let supervisor = keeper.supervisor.clone();
            tokio::select! {
                () = keeper.run() => {}
                () = supervisor.shared.shutdown_begun() => {}
            }
            drop(job);
        });
        owners
    }
}

/// The future that ends a session when its owners are gone.
struct Keeper {
    supervisor: Supervisor,
    session_id: String,
    owners: watch::Receiver<Owners>,
}

impl Keeper {
    async fn run(mut self) {
        loop {
            self.left_for_good().await;
            if self.cancel_tasks().await && self.forget().await {
                return;
            }
        }
    }

    /// Waits until no owner was there for the whole window.
    async fn left_for_good(&mut self) {
        loop {
            let gone = self.owners.wait_for(|owners| owners.present == 0).await;
            // The keeper ends before the last sender, which is in the map.
            let Ok(Owners {
                arrivals,
                reattach_window,
                ..
            }) = gone.map(|owners| *owners)
            else {
                return;
            };
            tokio::select! {
                () = sleep(reattach_window) => return,
                _ = self.owners.wait_for(|owners| owners.arrivals != arrivals) => {}
            }
        }
    }

    /// Cancels every live task of the session, and waits until each is proven gone or its survivors are named:
    /// another client may start one meanwhile. Returns false if an owner has come back; what it starts is not
    /// touched.
    async fn cancel_tasks(&self) -> bool {
        let mut cancelled = HashSet::new();
        loop {
            let Some(tasks) = self.next_tasks(&mut cancelled) else {
                return false;
            };
            if tasks.is_empty() {
                return true;
            }
            tracing::info!(
                session = self.session_id,
                tasks = tasks.len(),
                "the last owner of the session is gone; cancelling its tasks"
            );
            let mut stops = JoinSet::new();
            for task in tasks {
                stops.spawn(stop(task, self.request()));
            }
            stops.join_all().await;
        }
    }

    /// The live tasks of the session that were not cancelled yet; `None` if there is an owner. Both are looked at
    /// under the lock that an owner arrives under, so a task that an owner starts is never among them.
    fn next_tasks(&self, cancelled: &mut HashSet<TaskId>) -> Option<Vec<Handle>> {
        let _no_arrival = self.supervisor.shared.owned_sessions.lock();
        if self.owners.borrow().present > 0 {
            return None;
        }
        let filter = Filter {
            session_id: Some(self.session_id.clone()),
            ..Filter::default()
        };
        let mut tasks = self.supervisor.live_matching(&filter);
        tasks.retain(|task| cancelled.insert(task.task().id.clone()));
        Some(tasks)
    }

    fn request(&self) -> CancelRequest {
        CancelRequest {
            cause: StopCause::ClientDisconnected,
            mode: None,
            actor: Actor::heeler(),
            reason: Some(format!(
                "the last owner of session {:?} is gone",
                self.session_id
            )),
            // A child task has a session of its own, or none: it must not outlive the owner either.
            cascade: Cascade::Children,
        }
    }

    /// Deletes the row of the session, and its entry. Returns false if an owner has come back.
    async fn forget(&self) -> bool {
        let sessions = &self.supervisor.shared.owned_sessions;
        loop {
            crash::point("owner.tasks-cancelled");
            let one_at_a_time = sessions.records.lock().await;
            if self.owners.borrow().present > 0 {
                return false;
            }
            let session_id = self.session_id.clone();
            match self.supervisor.journal().set_owned(session_id, None).await {
                Ok(()) => {
                    sessions.lock().remove(&self.session_id);
                    return true;
                }
                Err(error) => {
                    let session = &self.session_id;
                    tracing::warn!(%error, session, "cannot record that a session has no owner any more; will retry");
                }
            }
            drop(one_at_a_time);
            sleep(DELETE_AGAIN).await;
        }
    }
}

/// Stops a task. Its actor stops it also if that cannot be recorded.
async fn stop(task: Handle, request: CancelRequest) {
    let _ = task.cancel(request).await;
    task.stopped().await;
}
