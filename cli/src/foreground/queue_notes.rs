//! Says on stderr what a queued task is waiting for, whenever that changes.
//!
//! The events of the tasks before it wake this watcher; nothing is asked for in between.

use std::time::Duration;

use heeler_client::{
    Client, Error, Filter, ListOptions, StreamExt, WatchOptions,
    v1::{BackgroundTask, TaskEventType, TaskState},
};
use tokio::{task::JoinHandle, time::sleep};

use crate::{
    context::RECONNECT_LIMIT,
    out,
    render::{spec, text},
};

/// Shortest time between two notes: a long queue moves faster than a person reads.
const PAUSE: Duration = Duration::from_secs(1);
/// The holders that a note names.
const MOST_NAMED: usize = 3;

/// The events after which a task may have another place.
const MOVES: [TaskEventType; 4] = [
    TaskEventType::Created,
    TaskEventType::Admitted,
    TaskEventType::Started,
    TaskEventType::Ended,
];

/// Ends with its owner.
#[derive(Debug)]
pub(crate) struct QueueNotes(JoinHandle<()>);

impl QueueNotes {
    /// Prints the first note, and the later ones until it is dropped.
    pub(crate) async fn start(client: Client, task: BackgroundTask) -> Self {
        let mut line = Line {
            client,
            task,
            shown: String::new(),
        };
        // The task does not depend on its notes.
        let place = line.show().await;
        Self(tokio::spawn(async move {
            if place.is_ok_and(|place| place == Place::Waiting) {
                let _ = line.follow().await;
            }
        }))
    }
}

impl Drop for QueueNotes {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The tasks before a queued one.
#[derive(Debug)]
struct Line {
    client: Client,
    task: BackgroundTask,
    /// The last note.
    shown: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Waiting,
    Admitted,
}

impl Line {
    /// Prints a note whenever an event changes it, until the task is admitted.
    async fn follow(&mut self) -> Result<(), Error> {
        let options = WatchOptions::from_now()
            .matching(self.filter())
            .give_up_after(RECONNECT_LIMIT);
        let options = MOVES.into_iter().fold(options, WatchOptions::event_type);
        let mut watch = self.client.watch(options);
        // The first item is a bookmark: from then on no event is missed.
        while let Some(item) = watch.next().await {
            item?;
            if self.show().await? == Place::Admitted {
                break;
            }
            sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Prints a note, unless it is the last one.
    async fn show(&mut self) -> Result<Place, Error> {
        let live = ListOptions::live().matching(self.filter()).page_size(1000);
        let tasks = self
            .client
            .list(live)
            .collect::<Result<Vec<_>, _>>()
            .await?;
        let Some(note) = note(&self.task, &tasks) else {
            return Ok(Place::Admitted);
        };
        if note != self.shown {
            out::note(&note);
            self.shown = note;
        }
        Ok(Place::Waiting)
    }

    fn filter(&self) -> Filter {
        match spec::queue(&self.task) {
            "" => Filter::all(),
            queue => Filter::all().queue(queue),
        }
    }
}

/// The note; none once the task has left its queue.
fn note(task: &BackgroundTask, live: &[BackgroundTask]) -> Option<String> {
    let id = &task.id;
    let own = live.iter().find(|one| one.id == *id)?;
    if own.state() != TaskState::Queued {
        return None;
    }
    let (queue, key) = (spec::queue(task), spec::exclusive_key(task));
    let same = |one: &&BackgroundTask| {
        one.id != *id
            && (!queue.is_empty() && spec::queue(one) == queue
                || !key.is_empty() && spec::exclusive_key(one) == key)
    };
    let (waiting, holding): (Vec<_>, Vec<_>) = live
        .iter()
        .filter(same)
        .partition(|one| one.state() == TaskState::Queued);
    let earlier = |one: &&&BackgroundTask| created(one) < created(own);
    let before = waiting.iter().filter(earlier).count();
    let mut note = format!("{id} is waiting for {}", spec::admission(task));
    note.push_str(&format!(": {before} before this one"));
    note.push_str(&held_by(&holding));
    Some(text::visible(&note).into_owned())
}

fn created(task: &BackgroundTask) -> Option<(i64, i32)> {
    task.create_time.map(|at| (at.seconds, at.nanos))
}

fn held_by(holding: &[&BackgroundTask]) -> String {
    let named: Vec<String> = holding
        .iter()
        .take(MOST_NAMED)
        .map(|one| holder(one))
        .collect();
    match (named.as_slice(), holding.len().saturating_sub(MOST_NAMED)) {
        ([], _) => String::new(),
        (names, 0) => format!(", held by {}", names.join(", ")),
        (names, more) => format!(", held by {} and {more} more", names.join(", ")),
    }
}

fn holder(task: &BackgroundTask) -> String {
    match spec::name(task) {
        "" => task.id.clone(),
        name => format!("{} ({name})", task.id),
    }
}

#[cfg(test)]
mod tests {
    use heeler_client::v1::TaskSpec;

    use super::*;

    fn task(id: &str, seconds: i64, state: TaskState) -> BackgroundTask {
        BackgroundTask {
            id: id.to_owned(),
            state: state.into(),
            create_time: Some(prost_types::Timestamp { seconds, nanos: 0 }),
            spec: Some(TaskSpec {
                queue: "build".to_owned(),
                ..TaskSpec::default()
            }),
            ..BackgroundTask::default()
        }
    }

    #[test]
    fn a_note_counts_the_tasks_before_and_names_the_holder() {
        let own = task("c", 3, TaskState::Queued);
        let mut live = vec![
            task("a", 1, TaskState::Running),
            task("b", 2, TaskState::Queued),
            own.clone(),
            task("d", 4, TaskState::Queued),
        ];
        assert_eq!(
            note(&own, &live).as_deref(),
            Some("c is waiting for queue build: 1 before this one, held by a")
        );
        live.remove(0);
        live.remove(0);
        assert_eq!(
            note(&own, &live).as_deref(),
            Some("c is waiting for queue build: 0 before this one")
        );
        live[0].state = TaskState::Running.into();
        assert_eq!(note(&own, &live), None);
    }
}
