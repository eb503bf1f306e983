//! The journal under arbitrary bytes: its records, the cursors that come back from clients, and a WAL
//! that is not as it was written.

use std::{collections::BTreeSet, fs, path::Path, sync::LazyLock, time::Duration};

use tempfile::TempDir;
use tokio::runtime::Runtime;
use uuid::Uuid;

use super::{
    Boot, Durability, Entry, Journal, JournalError, ListQuery, Position,
    record::{self, FORMAT},
};
use crate::{
    fuzz::Input,
    task::{
        Command, EndReason, EndState, Ended, EventKind, Fact, Filter, Kind, LeaderEnd, Moment,
        Outcome, Placement, Revision, Spec, State, Task, Timestamp,
    },
};

const BOOT: Boot = Boot([7; 16]);
/// The tasks of the journal that lists are read from.
const TASKS: u64 = 40;

/// A row's record of any kind. A task that can be read is returned, after a look that it is written as
/// it was read.
pub(crate) fn record(bytes: &[u8]) -> Option<Task> {
    let (kind, record) = bytes.split_first()?;
    match kind % 4 {
        0 => {
            let task = record::task(FORMAT, record, Revision(3)).ok()?;
            let written = serde_json::to_vec(&task).expect("a task can be recorded");
            let again = record::task(FORMAT, &written, Revision(3)).expect("it was just written");
            assert!(again == task, "written as another task: {task:?}");
            return Some(task);
        }
        1 => {
            let request = record::request(FORMAT, record).ok()?;
            let written = serde_json::to_vec(&request).expect("a request can be recorded");
            let again = record::request(FORMAT, &written).expect("it was just written");
            assert!(again == request, "written as another request: {request:?}");
        }
        2 => {
            let id = record::idle_session(FORMAT, record).ok()?;
            let written = record::encode_idle(&id);
            let again = record::idle_session(FORMAT, written.as_bytes());
            assert_eq!(again.expect("it was just written"), id);
        }
        _ => {
            let activity = record::decode_activity(record).ok()?;
            let written = record::encode_activity(&activity);
            let again = record::decode_activity(written.as_bytes());
            assert_eq!(again.expect("it was just written"), activity);
        }
    }
    None
}

/// A journal with live and finished tasks of every sort, which lists are read from.
struct Listed {
    runtime: Runtime,
    journal: Journal,
    _dir: TempDir,
}

static LISTED: LazyLock<Listed> = LazyLock::new(|| {
    let (dir, runtime) = (scratch(), runtime());
    let journal = runtime.block_on(async {
        let journal = open(dir.path()).expect("a new journal");
        for number in 0..TASKS {
            add_task(&journal, number).await;
        }
        journal
    });
    Listed {
        runtime,
        journal,
        _dir: dir,
    }
});

/// Pages of a list by a cursor and a filter that a client made up: every page is bounded, holds matching
/// tasks in order, and the list comes to an end without a task twice.
pub fn list(bytes: &[u8]) {
    let Listed {
        runtime, journal, ..
    } = &*LISTED;
    let mut input = Input(bytes);
    runtime.block_on(async {
        let mut query = query(&mut input, journal);
        let mut seen = BTreeSet::new();
        for _ in 0..2 * TASKS {
            let page = journal.list(query.clone()).await.expect("a sound journal");
            assert!(page.tasks.len() <= query.page_size.max(1));
            for task in &page.tasks {
                assert!(query.filter.matches(task), "{query:?}: {task:?}");
                assert!(seen.insert(task.seq), "{query:?}: {} twice", task.id);
            }
            match page.next {
                Some(next) => query.position = Some(next),
                None => return events(&mut input, journal, &query.filter).await,
            }
        }
        panic!("a list without an end: {query:?}");
    });
}

/// Events after a revision that a client made up: refused as out of range, or in order without a gap.
async fn events(input: &mut Input<'_>, journal: &Journal, filter: &Filter) {
    let after = match input.byte() % 3 {
        0 => input.u64(),
        1 => u64::from(input.u16()),
        _ => journal.head().0.wrapping_sub(u64::from(input.byte())),
    };
    let limit = usize::from(input.u16());
    if let Ok(facts) = journal.facts_after(Revision(after), limit).await {
        let revisions: Vec<u64> = facts.iter().map(|fact| fact.revision().0).collect();
        let expected: Vec<u64> = (after + 1..).take(facts.len()).collect();
        assert_eq!(revisions, expected);
        assert!(facts.len() <= limit.max(1));
    }
    let before = Revision(input.u64());
    let ended = journal.ended_within(Revision(after), before, filter.clone());
    ended.await.expect("a sound journal");
}

fn query(input: &mut Input<'_>, journal: &Journal) -> ListQuery {
    let flags = input.byte();
    let mut filter = Filter::default();
    let chosen = input.byte();
    let key = journal.id_key();
    if chosen & 1 != 0 {
        filter.session_id = Some(format!("session-{}", input.byte() % 4));
    }
    if chosen & 2 != 0 {
        filter.kinds = vec![[Kind::Shell, Kind::Agent][usize::from(input.byte() % 2)]];
    }
    if chosen & 4 != 0 {
        filter.states = vec![
            [
                State::Queued,
                State::Running,
                State::Ended(EndState::Completed),
                State::Ended(EndState::Failed),
            ][usize::from(input.byte() % 4)],
        ];
    }
    if chosen & 8 != 0 {
        let seq = super::Seq(u64::from(input.byte()));
        filter.ids = vec![key.task_id(Kind::Shell, seq), key.task_id(Kind::Agent, seq)];
    }
    if chosen & 16 != 0 {
        filter.placement = Some(Placement::Background);
    }
    if chosen & 32 != 0 {
        filter.directory = Some(format!("/tmp/{}", input.byte() % 3).into());
    }
    if chosen & 64 != 0 {
        let value = (input.byte() % 3).to_string();
        filter.labels = [("part".to_owned(), value)].into();
    }
    if chosen & 128 != 0 {
        filter.stale = Some(input.byte() & 1 != 0);
    }
    ListQuery {
        filter,
        include_finished: flags & 1 != 0,
        include_finished_foreground: flags & 2 != 0,
        page_size: usize::from(input.u16() % 1001),
        position: (flags & 4 != 0).then(|| position(input)).flatten(),
    }
}

/// A position as a token carries it.
fn position(input: &mut Input<'_>) -> Option<Position> {
    let number = |input: &mut Input<'_>| match input.byte() % 2 {
        0 => u64::from(input.byte()),
        _ => input.u64(),
    };
    let (since, below) = (number(input), number(input));
    let phase = ["live", "finished"][usize::from(input.byte() % 2)];
    let json = serde_json::json!({"since": since, "phase": phase, "below": below});
    serde_json::from_value(json).ok()
}

/// The files of a journal whose server was killed: nothing is in the database, all of it in the WAL.
struct Killed {
    files: Vec<(&'static str, Vec<u8>)>,
    facts: Vec<Fact>,
    epoch: Uuid,
}

const WAL: &str = "journal.db-wal";

static KILLED: LazyLock<Killed> = LazyLock::new(|| {
    let dir = scratch();
    runtime().block_on(async {
        let journal = open(dir.path()).expect("a new journal");
        for number in 0..5 {
            add_task(&journal, number).await;
        }
        let files = ["journal.db", WAL, "journal.db-shm"];
        let content = |name| fs::read(dir.path().join(name)).expect("a file of the journal");
        Killed {
            files: files.map(|name| (name, content(name))).into(),
            facts: facts(&journal).await,
            epoch: journal.epoch(),
        }
    })
});

/// A WAL with changed bytes, a hole or a missing end: the journal is refused, or has the facts from before
/// the damage and no other, and says by a new epoch that some are lost.
pub fn damaged_wal(bytes: &[u8]) {
    let dir = scratch();
    let mut input = Input(bytes);
    for (name, content) in &KILLED.files {
        let mut content = content.clone();
        if *name == WAL {
            damage(&mut input, &mut content);
        }
        fs::write(dir.path().join(name), content).expect("room in memory");
    }
    runtime().block_on(async {
        let journal = match open(dir.path()) {
            Ok(journal) => journal,
            Err(JournalError::Mixed { .. }) => return,
            Err(error) => panic!("refused: {error:?}"),
        };
        let facts = facts(&journal).await;
        assert!(KILLED.facts.starts_with(&facts), "{facts:#?}");
        let is_whole = facts.len() == KILLED.facts.len();
        let same_epoch = journal.epoch() == KILLED.epoch;
        assert!(is_whole || !same_epoch, "lost facts without a word");
        journal.close().await.expect("an open journal");
    });
}

fn damage(input: &mut Input<'_>, content: &mut Vec<u8>) {
    while !input.is_empty() {
        let kind = input.byte();
        // Most positions in reach of two bytes are in pages; the headers are at every 4,120th byte.
        let position = match kind & 1 {
            0 => usize::from(input.u16()) % 60 * 4120 + 32 + usize::from(input.byte()) % 24,
            _ => usize::from(input.u16()) * 7,
        };
        let Some(byte) = content.get_mut(position) else {
            continue;
        };
        match kind >> 1 {
            0..32 => *byte ^= input.byte(),
            32..64 => *byte = input.byte(),
            64..96 => content.truncate(position),
            _ => {
                let end = (position + usize::from(input.u16())).min(content.len());
                content[position..end].fill(0);
            }
        }
    }
}

async fn facts(journal: &Journal) -> Vec<Fact> {
    let mut facts: Vec<Fact> = Vec::new();
    loop {
        let last = facts.last().map_or(Revision(0), Fact::revision);
        let batch = journal.facts_after(last, 100).await;
        let batch = batch.expect("what was committed can be read");
        if batch.is_empty() {
            return facts;
        }
        facts.extend(batch);
    }
}

/// Adds a task; two of three are finished.
async fn add_task(journal: &Journal, number: u64) {
    let kind = [Kind::Shell, Kind::Agent][(number % 2) as usize];
    let seq = journal.next_seq();
    let spec = Spec {
        kind,
        session_id: format!("session-{}", number % 3),
        labels: [("part".to_owned(), (number % 2).to_string())].into(),
        working_directory: format!("/tmp/{}", number % 2).into(),
        ..Spec::new(Command::Argv(vec!["/bin/true".into()]))
    };
    let id = journal.id_key().task_id(kind, seq);
    let mut task = Task::new(seq, id, spec, Timestamp(number));
    append(journal, EventKind::Created, &task).await;
    if number.is_multiple_of(3) {
        return;
    }
    let state = [EndState::Completed, EndState::Failed][(number % 2) as usize];
    task.leader_end = Some(LeaderEnd {
        outcome: Outcome::Exited((number % 2) as i32),
        at: Moment::now(),
    });
    task.ended = Some(Ended {
        state,
        reason: EndReason::Exited,
        at: Timestamp(number),
        cpu: Duration::from_millis(number),
        max_memory: number,
    });
    append(journal, EventKind::Ended, &task).await;
}

async fn append(journal: &Journal, kind: EventKind, task: &Task) {
    let entry = Entry {
        kind,
        task: task.clone(),
        request: None,
    };
    journal.append(entry).await.expect("a sound journal");
}

fn open(dir: &Path) -> Result<Journal, JournalError> {
    Journal::open(dir, Durability::Process, BOOT)
}

/// A directory where `tests/fuzz/run` wants it: in memory, and deleted by it, as libFuzzer ends the process without
/// dropping anything.
fn scratch() -> TempDir {
    tempfile::tempdir().expect("a directory for temporary files")
}

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime")
}
