//! What no task accounts for: files and cgroups that a Remove did not come to delete, or that the
//! journal has lost sight of. It goes on beside everything else, since none of it is anybody's.
//!
//! Nothing is deleted but what was to be: a file that the journal never heard of may be the only
//! trace of a task, so it is set aside, and said to be there. What lives is stopped: nobody could
//! ask for that any more.

use std::{io, path::Path, sync::Arc, time::Duration};

use tokio::task::spawn_blocking;

use super::{
    Presence, Shared, Supervisor,
    actor::KILL_WITHIN,
    case::{Boot, Leftover, Lock, Remains, Seen, Trace, leftover},
    observe::cgroup_path,
};
use crate::{
    journal::{JournalError, Memory},
    process::{
        BootId, containment,
        shim::{ShimLink, ShimOrder},
        task_file::{FileState, Records, TaskDirEntry},
        tree::sweep::{SweepTarget, Swept},
    },
    task::{Task, TaskId, TaskUid},
};

/// Ids that the journal is asked for at once.
const BATCH: usize = 1024;
/// Between two looks at a cgroup whose members were killed.
const STEP: Duration = Duration::from_millis(5);

/// Why something was left as it is.
#[derive(Debug, thiserror::Error)]
enum LeftoverError {
    #[error("cannot look for what no task accounts for")]
    Io(#[from] io::Error),
    #[error("cannot ask who accounts for it")]
    Journal(#[from] JournalError),
}

impl Supervisor {
    /// Begins; it is over when it is over, or when the server leaves.
    pub(super) fn clear_leftovers(&self) {
        let shared = Arc::clone(&self.shared);
        let presence = Presence::of(&shared);
        tokio::spawn(async move {
            let _presence = presence;
            let mut leaving = shared.leaving.subscribe();
            tokio::select! {
                _ = leaving.wait_for(|leaving| *leaving) => {}
                cleared = clear(&shared) => if let Err(error) = cleared {
                    let cause = std::error::Error::source(&error).map(ToString::to_string);
                    tracing::error!(%error, ?cause, "leftovers stay");
                },
            }
        });
    }
}

async fn clear(shared: &Shared) -> Result<(), LeftoverError> {
    let task_dir = shared.parts.task_dir.clone();
    let found = spawn_blocking(move || task_dir.entries())
        .await
        .map_err(io::Error::other)??;
    let mut ids = Vec::new();
    for found in found {
        match found {
            TaskDirEntry::Task(id) => ids.push(id),
            TaskDirEntry::Other(path) => {
                tracing::warn!(path = %path.display(), "not a task's, among the task files");
            }
        }
    }
    for (id, memory) in unknown(shared, ids).await? {
        if let Err(error) = deal_with(shared, &id, memory).await {
            tracing::error!(task = %id, %error, "a file of no known task stays where it is");
        }
    }
    clear_memory(shared).await?;
    clear_cgroups(shared).await
}

/// Deletes output in memory that has lost its task and its file: what was kept of it is on the disk.
/// That of a detached task belongs there, and is taken there if it is over; else its shim does that.
async fn clear_memory(shared: &Shared) -> Result<(), LeftoverError> {
    let task_dir = shared.parts.task_dir.clone();
    let found = spawn_blocking(move || task_dir.tasks_in_memory())
        .await
        .map_err(io::Error::other)??;
    for id in found.clone() {
        let task = shared.parts.journal.task(&id).await?;
        let is_due = |task: &Arc<Task>| !task.is_live() && task.detached.is_some();
        if task.as_ref().is_some_and(is_due) {
            let task_dir = shared.parts.task_dir.clone();
            let spilled = spawn_blocking(move || task_dir.spill(&id)).await;
            spilled.map_err(io::Error::other)??;
        }
    }
    let task_dir = &shared.parts.task_dir;
    for (id, _) in unknown(shared, found).await? {
        if !task_dir.path(&id).try_exists()? {
            task_dir.remove_from_memory(&id)?;
        }
    }
    Ok(())
}

/// Those that no task has.
async fn unknown(
    shared: &Shared,
    ids: Vec<TaskId>,
) -> Result<Vec<(TaskId, Memory)>, LeftoverError> {
    let mut unknown = Vec::new();
    for batch in ids.chunks(BATCH) {
        unknown.extend(shared.parts.journal.unknown(batch.to_vec()).await?);
    }
    Ok(unknown)
}

/// Every kind of leftover there is, and what is done about it.
pub(super) async fn deal_with(shared: &Shared, id: &TaskId, memory: Memory) -> io::Result<()> {
    let Some((mut seen, sweep)) = look(shared, id)? else {
        return Ok(());
    };
    let leftover = loop {
        if let Some(leftover) = leftover(memory, &seen) {
            break leftover;
        }
        seen.tree = match shared.sweeper.count(&sweep).await? {
            0 => Remains::Nobody,
            _ => Remains::Somebody,
        };
    };
    match leftover {
        Leftover::Worthless => shared.parts.task_dir.remove(id),
        Leftover::Unknown => put_away(shared, id, memory),
        Leftover::ShimAlive(uid) => {
            tracing::warn!(task = %id, "a shim of no known task lives: it is stopped");
            stop_shim(uid).await?;
            put_away(shared, id, memory)
        }
        Leftover::TreeAlive => {
            tracing::warn!(task = %id, "processes of no known task live: they are stopped");
            match shared.sweeper.sweep(&sweep, KILL_WITHIN).await? {
                Swept::Gone { .. } => put_away(shared, id, memory),
                Swept::NotGone(survivors) => Err(io::Error::other(format!(
                    "its processes cannot be killed: {survivors:?}"
                ))),
            }
        }
        Leftover::ShimNameless => Err(io::Error::other(
            "a living process holds it, and it does not say whose it is",
        )),
        Leftover::NotAFile => Err(io::Error::other("it is not a file")),
    }
}

fn look(shared: &Shared, id: &TaskId) -> io::Result<Option<(Seen, SweepTarget)>> {
    let (lock, file) = match shared.parts.task_dir.file_state(id)? {
        None => return Ok(None),
        Some(FileState::Locked(file)) => (Lock::Held, Some(file)),
        Some(FileState::Unlocked(file)) => (Lock::Free, Some(file)),
        Some(FileState::NotAFile) => (Lock::Free, None),
    };
    let records = match &file {
        Some(file) => file.records()?,
        None => Records::default(),
    };
    let boot = Boot::of(&records, BootId::current()?);
    let identity = records.identity.whole();
    let sweep = SweepTarget {
        // Nobody has the tag of nobody.
        uid: TaskUid(identity.map_or(uuid::Uuid::nil(), |identity| {
            uuid::Uuid::from_bytes(identity.task_uid)
        })),
        cgroup: match &identity {
            Some(identity) => cgroup_path(&identity.cgroup),
            None => shared.parts.containment.leaf(id),
        },
        leader: None,
        spared: None,
    };
    let own = Trace::Own {
        lock,
        boot,
        records: Box::new(records),
    };
    let seen = Seen {
        file: file.map_or(Trace::NotAFile, |_| own),
        tree: Remains::Unsought,
    };
    Ok(Some((seen, sweep)))
}

/// Has a shim kill its tree, and waits until it has ended.
async fn stop_shim(uid: TaskUid) -> io::Result<()> {
    let mut link = ShimLink::connect(uid)?;
    let within_millis = KILL_WITHIN.as_millis() as u64;
    link.send(ShimOrder::Kill { within_millis }).await?;
    let ended = async { while link.next().await.is_some() {} };
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "its tree cannot be killed");
    tokio::time::timeout(KILL_WITHIN, ended).await.map_err(late)
}

fn put_away(shared: &Shared, id: &TaskId, memory: Memory) -> io::Result<()> {
    let task_dir = &shared.parts.task_dir;
    match memory {
        Memory::Removed => task_dir.remove(id),
        Memory::None => {
            let to = task_dir.set_aside(id)?;
            tracing::warn!(task = %id, to = %to.display(), "a file of no known task was set aside");
            Ok(())
        }
    }
}

/// Removes the cgroups that nobody uses any more, and empties those that nobody may.
async fn clear_cgroups(shared: &Shared) -> Result<(), LeftoverError> {
    let mut idle = Vec::new();
    for leaf in shared.parts.containment.leaves() {
        match task_of(&leaf) {
            Some(id) if is_live(shared, &id) => {}
            Some(id) => idle.push((id, leaf)),
            None => containment::remove_tree(&leaf),
        }
    }
    let ids = idle.iter().map(|(id, _)| id.clone()).collect();
    let unknown = unknown(shared, ids).await?;
    for (id, leaf) in idle {
        containment::remove_tree(&leaf);
        let stray = unknown.contains(&(id.clone(), Memory::None))
            && !shared.parts.task_dir.has_abandoned(&id);
        if stray && leaf.exists() && !empty(&leaf).await {
            tracing::error!(task = %id, "the cgroup of no known task cannot be emptied");
        }
    }
    Ok(())
}

/// Removes the cgroups of tasks that are over: processes that were let go may have been in them.
pub(super) fn remove_idle_cgroups(shared: &Shared) {
    for leaf in shared.parts.containment.leaves() {
        if task_of(&leaf).is_some_and(|id| !is_live(shared, &id)) {
            containment::remove_tree(&leaf);
        }
    }
    shared.parts.containment.leave();
}

/// An actor that has just told its task's end may still be there.
fn is_live(shared: &Shared, id: &TaskId) -> bool {
    let handle = shared.registry.get(id);
    handle.is_some_and(|handle| handle.task().is_live())
}

fn task_of(leaf: &Path) -> Option<TaskId> {
    leaf.file_name()?.to_str()?.parse().ok()
}

/// Kills the members of a cgroup, and removes it.
async fn empty(leaf: &Path) -> bool {
    let gone = async {
        containment::kill(leaf);
        while leaf.exists() {
            tokio::time::sleep(STEP).await;
            containment::remove_tree(leaf);
        }
    };
    tokio::time::timeout(KILL_WITHIN, gone).await.is_ok()
}
