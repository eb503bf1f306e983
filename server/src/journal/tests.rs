//! The journal's behaviours, seen from outside, and the tasks that these tests share.

mod appending;
mod damaged_file;
mod damaged_records;
mod epochs;
mod listing;
mod opening;
mod plans;
mod pruning;
mod queues;
mod reading;
mod sessions;
mod work;

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use super::{Boot, Durability, Entry, Journal, file};
use crate::task::{
    Command, Containment, EndReason, EndState, Ended, Environment, EnvironmentDefaults, Event,
    EventKind, Fact, IdKey, Kind, Leader, LeaderEnd, Moment, Outcome, Revision, Seq, SpawnRequest,
    Spec, Started, StartedBy, Task, Timestamp,
};

pub(super) const BOOT: Boot = Boot([7; 16]);

pub(super) fn open(dir: &Path) -> Journal {
    Journal::open(dir, Durability::Process, BOOT).expect("the journal opens")
}

/// A connection for what no journal does to its own file.
pub(super) fn raw(dir: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(file::path(dir)).expect("the file opens")
}

pub(super) fn spec() -> Spec {
    Spec {
        name: "build".into(),
        labels: BTreeMap::from([("repo".into(), "heeler".into())]),
        working_directory: "/tmp".into(),
        environment: Environment {
            variable_names: vec!["LANG".into()],
            ..Environment::default()
        },
        ..Spec::new(Command::Argv(vec!["/bin/true".into()]))
    }
}

pub(super) fn task_with(key: IdKey, seq: Seq, spec: Spec) -> Task {
    Task::new(seq, key.task_id(spec.kind, seq), spec, Timestamp::now())
}

fn new_task(journal: &Journal) -> Task {
    task_with(journal.id_key(), journal.next_seq(), spec())
}

fn start(task: &mut Task) {
    task.started = Some(Started {
        at: Moment::now(),
        by: StartedBy::Leader(Leader {
            pid: 42,
            start_ticks: 7,
            containment: Containment::Subreaper,
        }),
    });
}

pub(super) fn end(task: &mut Task, state: EndState) {
    let at = Timestamp::now();
    task.leader_end = Some(LeaderEnd {
        outcome: Outcome::Exited(0),
        at: Moment::now(),
    });
    let (reason, cpu) = (EndReason::Exited, Duration::from_millis(3));
    task.ended = Some(Ended {
        state,
        reason,
        at,
        cpu,
        max_memory: 4096,
    });
}

pub(super) fn entry(kind: EventKind, task: &Task) -> Entry {
    Entry {
        kind,
        task: task.clone(),
        request: None,
    }
}

fn request(request_id: Option<&str>) -> SpawnRequest {
    SpawnRequest {
        request_id: request_id.map(Into::into),
        spec: Spec {
            name: "build".into(),
            session_id: "s1".into(),
            environment: Environment {
                defaults: EnvironmentDefaults::None,
                variable_names: vec!["TOKEN".into()],
                ..Environment::default()
            },
            ..Spec::new(Command::Argv(vec!["/bin/true".into()]))
        },
        variables: BTreeMap::from([("TOKEN".into(), "xyzzy-is-a-secret".into())]),
    }
}

async fn append(journal: &Journal, kind: EventKind, task: &Task) -> Arc<Event> {
    journal
        .append(entry(kind, task))
        .await
        .expect("the fact is appended")
}

/// Appends the events of a task that is created, started and ended.
pub(super) async fn finish_one(journal: &Journal) -> Task {
    let mut task = new_task(journal);
    append(journal, EventKind::Created, &task).await;
    start(&mut task);
    append(journal, EventKind::Started, &task).await;
    end(&mut task, EndState::Completed);
    task.revision = append(journal, EventKind::Ended, &task).await.revision;
    task
}

/// Every event after a revision, if all facts are events of tasks.
pub(super) async fn all_after(journal: &Journal, after: Revision, limit: usize) -> Vec<Arc<Event>> {
    let facts = all_facts_after(journal, after, limit).await;
    let event = |fact: &Fact| Arc::clone(fact.event().expect("of a task"));
    facts.iter().map(event).collect()
}

/// Every fact after a revision, read in batches.
async fn all_facts_after(journal: &Journal, after: Revision, limit: usize) -> Vec<Fact> {
    let mut facts: Vec<Fact> = Vec::new();
    loop {
        let last = facts.last().map_or(after, Fact::revision);
        let batch = journal
            .facts_after(last, limit)
            .await
            .expect("the events are there");
        if batch.is_empty() {
            return facts;
        }
        facts.extend(batch);
    }
}
