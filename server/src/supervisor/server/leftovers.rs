//! Leftovers: files, memory and cgroups that belong to no task, because a Remove was cut short or the
//! journal has lost the task. They are cleared while the server serves.
//!
//! Only the files of removed tasks and empty files are deleted. A file that the journal does not know
//! may be the only trace of a task: it is set aside and logged. Living processes of such a task are
//! killed, since no client could stop them any more.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::task::spawn_blocking;

use crate::{
    journal::{JournalError, Memory},
    process::{
        BootId, containment,
        shim::{ShimLink, ShimOrder},
        task_file::{FileState, Records, TaskDir, TaskDirEntry},
        tree::sweep::{SweepTarget, Swept},
    },
    supervisor::{
        JobGuard, Shared, Supervisor,
        lifecycle::KILL_DEADLINE,
        lifecycle::case::{Boot, FileSeen, Leftover, Lock, Seen, Tree, kept_shim, leftover},
        looks::probe,
        task_actor::cgroup_path,
    },
    task::{Placement, Task, TaskId, TaskUid},
};

/// The number of ids in one query of the journal.
const BATCH: usize = 1024;

#[derive(Debug, thiserror::Error)]
enum LeftoverError {
    #[error("cannot look for leftovers")]
    Io(#[from] io::Error),
    #[error("cannot look up the tasks of leftovers")]
    Journal(#[from] JournalError),
}

impl Supervisor {
    /// Clears leftovers in the background, until none is left or the server shuts down.
    pub(super) fn clear_leftovers(&self) {
        let job = JobGuard::new(&self.shared);
        tokio::spawn(async move {
            let shared = &job.0;
            tokio::select! {
                () = shared.shutdown_begun() => {}
                cleared = clear(shared) => if let Err(error) = cleared {
                    let cause = std::error::Error::source(&error).map(ToString::to_string);
                    tracing::error!(%error, ?cause, "clearing of leftovers failed");
                },
            }
        });
    }
}

async fn clear(shared: &Shared) -> Result<(), LeftoverError> {
    clear_files(shared).await?;
    clear_memory(shared).await?;
    clear_cgroups(shared).await
}

async fn clear_files(shared: &Shared) -> Result<(), LeftoverError> {
    let mut ids = Vec::new();
    for found in in_task_dir(shared, |task_dir| task_dir.entries()).await? {
        match found {
            TaskDirEntry::Task(id) => ids.push(id),
            TaskDirEntry::Probe(id) => {
                if let Err(error) = probe::clear_leftover(shared, &id).await {
                    tracing::error!(task = %id, %error, "cannot end the command of a ready policy");
                }
            }
            TaskDirEntry::Other(path) => {
                tracing::warn!(path = %path.display(), "not a task file; left in place");
            }
        }
    }
    for (id, memory) in without_task(shared, ids).await? {
        if let Err(error) = clear_file(shared, &id, memory).await {
            tracing::error!(task = %id, %error, "cannot clear the file of an unknown task");
        }
    }
    Ok(())
}

/// Deletes output in memory that has neither a task nor a file: it was moved to disk. The output of a
/// finished task that left the foreground is moved to disk; that of a live one is moved by its shim.
async fn clear_memory(shared: &Shared) -> Result<(), LeftoverError> {
    let found = in_task_dir(shared, |task_dir| task_dir.tasks_in_memory()).await?;
    for id in found.clone() {
        let task = shared.parts.journal.task(&id).await?;
        let is_due =
            |task: &Arc<Task>| !task.is_live() && task.placement() == Placement::Background;
        if task.as_ref().is_some_and(is_due) {
            in_task_dir(shared, move |task_dir| task_dir.spill(&id)).await?;
        }
    }
    let task_dir = &shared.parts.task_dir;
    for (id, _) in without_task(shared, found).await? {
        if !task_dir.path(&id).try_exists()? {
            task_dir.remove_from_memory(&id)?;
        }
    }
    Ok(())
}

/// Runs file operations on a thread that may block.
async fn in_task_dir<T: Send + 'static>(
    shared: &Shared,
    operation: impl FnOnce(&TaskDir) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let task_dir = shared.parts.task_dir.clone();
    let done = spawn_blocking(move || operation(&task_dir)).await;
    done.map_err(io::Error::other)?
}

/// The ids that no task has, each with what the journal remembers of it.
async fn without_task(
    shared: &Shared,
    ids: Vec<TaskId>,
) -> Result<Vec<(TaskId, Memory)>, LeftoverError> {
    let mut unknown = Vec::new();
    for batch in ids.chunks(BATCH) {
        unknown.extend(shared.parts.journal.unknown(batch.to_vec()).await?);
    }
    Ok(unknown)
}

/// Deletes a file without a task or sets it aside, after its shim and its tree are gone.
pub(super) async fn clear_file(shared: &Shared, id: &TaskId, memory: Memory) -> io::Result<()> {
    let Some((mut seen, sweep)) = look(shared, id)? else {
        return Ok(());
    };
    if let Some(uid) = kept_shim(&seen) {
        end_kept_shim(id, uid).await;
    }
    let leftover = loop {
        if let Some(leftover) = leftover(memory, &seen) {
            break leftover;
        }
        seen.tree = Tree::of_size(shared.sweeper.count(&sweep).await?);
    };
    match leftover {
        Leftover::Deletable => shared.parts.task_dir.remove(id),
        Leftover::Unknown => delete_or_set_aside(shared, id, memory),
        Leftover::ShimAlive(uid) => {
            tracing::warn!(task = %id, "stopping the living shim of an unknown task");
            stop_shim(uid).await?;
            kill_tree(shared, &sweep).await?;
            delete_or_set_aside(shared, id, memory)
        }
        Leftover::TreeAlive => {
            tracing::warn!(task = %id, "killing living processes of an unknown task");
            kill_tree(shared, &sweep).await?;
            delete_or_set_aside(shared, id, memory)
        }
        Leftover::UnidentifiedShim => Err(io::Error::other(
            "a living process has locked it, and it has no readable identity",
        )),
        Leftover::NotAFile => Err(io::Error::other("it is not a file")),
    }
}

async fn kill_tree(shared: &Shared, sweep: &SweepTarget) -> io::Result<()> {
    match shared.sweeper.sweep(sweep, KILL_DEADLINE).await? {
        Swept::Gone { .. } => Ok(()),
        Swept::NotGone(survivors) => Err(io::Error::other(format!(
            "its processes cannot be killed: {survivors:?}"
        ))),
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
        // No process has the marks of the nil id.
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
    let own = FileSeen::Own {
        lock,
        boot,
        records: Box::new(records),
    };
    let seen = Seen {
        file: file.map_or(FileSeen::NotAFile, |_| own),
        tree: Tree::NotLookedFor,
    };
    Ok(Some((seen, sweep)))
}

/// Ends a shim that waits for an order to start its task again, which no server would give.
async fn end_kept_shim(id: &TaskId, uid: TaskUid) {
    // One that is about to exit by itself takes no connection.
    let Ok(mut link) = ShimLink::connect(uid).await else {
        return;
    };
    let exited = async {
        link.send(ShimOrder::GiveUp).await?;
        while link.next().await.is_some() {}
        io::Result::Ok(())
    };
    match tokio::time::timeout(KILL_DEADLINE, exited).await {
        Ok(Ok(())) => {}
        Ok(Err(_)) | Err(_) => {
            tracing::warn!(task = %id, "the shim of an unknown task does not exit");
        }
    }
}

/// Lets a shim kill its tree, and waits until it has exited.
async fn stop_shim(uid: TaskUid) -> io::Result<()> {
    let mut link = ShimLink::connect(uid).await?;
    let within_millis = KILL_DEADLINE.as_millis() as u64;
    // It would wait for another attempt.
    link.send(ShimOrder::GiveUp).await?;
    link.send(ShimOrder::Kill { within_millis }).await?;
    let exited = async { while link.next().await.is_some() {} };
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "its tree cannot be killed");
    tokio::time::timeout(KILL_DEADLINE, exited)
        .await
        .map_err(late)
}

fn delete_or_set_aside(shared: &Shared, id: &TaskId, memory: Memory) -> io::Result<()> {
    let task_dir = &shared.parts.task_dir;
    match memory {
        Memory::Removed => task_dir.remove(id),
        Memory::None => {
            let to = task_dir.set_aside(id)?;
            tracing::warn!(task = %id, to = %to.display(), "file of an unknown task was set aside");
            Ok(())
        }
    }
}

/// Removes the empty cgroups of finished and removed tasks, and kills the processes in those of
/// unknown tasks.
async fn clear_cgroups(shared: &Shared) -> Result<(), LeftoverError> {
    let mut unused = Vec::new();
    for leaf in shared.parts.containment.leaves() {
        match task_of(&leaf) {
            Some(id) if is_live(shared, &id) => {}
            Some(id) => unused.push((id, leaf)),
            None => containment::remove_tree(&leaf),
        }
    }
    let ids = unused.iter().map(|(id, _)| id.clone()).collect();
    let unknown = without_task(shared, ids).await?;
    for (id, leaf) in unused {
        containment::remove_tree(&leaf);
        let is_unknown = unknown.contains(&(id.clone(), Memory::None))
            && !shared.parts.task_dir.has_abandoned(&id);
        if is_unknown
            && leaf.exists()
            && let Err(error) = kill_tree(shared, &of_cgroup(leaf)).await
        {
            tracing::error!(task = %id, %error, "cannot empty the cgroup of an unknown task");
        }
    }
    Ok(())
}

/// Removes the empty cgroups of finished tasks; abandoned processes may have been in them.
pub(super) fn remove_unused_cgroups(shared: &Shared) {
    for leaf in shared.parts.containment.leaves() {
        if task_of(&leaf).is_some_and(|id| !is_live(shared, &id)) {
            containment::remove_tree(&leaf);
        }
    }
    shared.parts.containment.leave();
}

/// An actor may still be there after the end of its task.
fn is_live(shared: &Shared, id: &TaskId) -> bool {
    let handle = shared.registry.get(id);
    handle.is_some_and(|handle| handle.task().is_live())
}

fn task_of(leaf: &Path) -> Option<TaskId> {
    containment::task_of(leaf.file_name()?.to_str()?)
}

/// The processes of a cgroup whose task's uid is not known: no process has the marks of the nil id.
fn of_cgroup(leaf: PathBuf) -> SweepTarget {
    SweepTarget {
        uid: TaskUid(uuid::Uuid::nil()),
        cgroup: Some(leaf),
        leader: None,
        spared: None,
    }
}
