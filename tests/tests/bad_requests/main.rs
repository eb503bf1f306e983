//! Bad requests: each field that a client can send, the refusal that names it, and that a refused
//! call has changed nothing: no task, no process, no file, no descriptor.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cancel_list_watch;
mod queue;
mod rules;
mod spawn;
mod wait_read_remove;

use std::{collections::BTreeSet, path::PathBuf};

use heeler_tests::{Api, Daemon, Fixture, Refusal, argv, eventually, process::descriptors, v1::*};
use prost_types::Duration;
use tonic::{Code, Status};

/// A daemon with one task that runs and one that is over.
struct Edge {
    daemon: Daemon,
    api: Api,
    running: Fixture,
    over: String,
    before: World,
}

/// All that a refused call might have changed.
#[derive(Debug, PartialEq)]
struct World {
    tasks: Vec<BackgroundTask>,
    revision: u64,
    processes: usize,
    files: BTreeSet<PathBuf>,
}

impl Edge {
    async fn new() -> Self {
        let daemon = Daemon::start().await;
        let api = daemon.api().await;
        let running = daemon.run(&api, "forever").await;
        let over = api.start(argv(["true"])).await.id;
        api.ended(&over).await;
        eventually("one shim and one leader", || daemon.processes().len() == 2).await;
        let before = World::of(&daemon, &api).await;
        Self {
            daemon,
            api,
            running,
            over,
            before,
        }
    }

    /// Makes every call, and compares the world before and after.
    async fn refuses(self, cases: Vec<Case>) {
        let open = descriptors(self.daemon.pid());
        for case in cases {
            let status = match case.call.make(&self.api).await {
                Ok(answer) => panic!("{}: not refused: {answer}", case.what),
                Err(status) => status,
            };
            let refusal = Refusal::of(&status);
            let told = (refusal.code, &*refusal.reason);
            assert_eq!(told, (case.code, case.reason), "{}: {refusal:?}", case.what);
            let named = refusal.fields.first().map(String::as_str);
            assert_eq!(named, case.field.as_deref(), "{}: {refusal:?}", case.what);
        }
        assert_eq!(World::of(&self.daemon, &self.api).await, self.before);
        let pid = self.daemon.pid();
        eventually("no descriptor is left", || descriptors(pid) <= open).await;
    }
}

impl World {
    async fn of(daemon: &Daemon, api: &Api) -> Self {
        let mut files = BTreeSet::new();
        let mut rest = vec![daemon.state_dir()];
        while let Some(path) = rest.pop() {
            if path.is_dir() {
                rest.extend(
                    std::fs::read_dir(&path)
                        .unwrap()
                        .flatten()
                        .map(|entry| entry.path()),
                );
            }
            files.insert(path);
        }
        Self {
            tasks: api.all().await,
            revision: api.revision().await,
            processes: daemon.processes().len(),
            files,
        }
    }
}

/// One bad request, and how it is to be refused.
struct Case {
    what: String,
    call: Call,
    code: Code,
    reason: &'static str,
    field: Option<String>,
}

#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "there are a few dozen, and each is written out as it is"
)]
enum Call {
    Spawn(SpawnRequest),
    Cancel(CancelRequest),
    List(ListRequest),
    Inspect(InspectRequest),
    Watch(WatchEventsRequest),
    Wait(WaitRequest),
    Read(ReadOutputRequest),
    Remove(RemoveRequest),
    UpdateQueue(UpdateQueueRequest),
}

impl Call {
    async fn make(&self, api: &Api) -> Result<String, Status> {
        fn shown<T: std::fmt::Debug>(answer: T) -> String {
            format!("{answer:?}")
        }
        let mut raw = api.raw();
        match self {
            Self::Spawn(request) => raw.spawn(request.clone()).await.map(shown),
            Self::Cancel(request) => raw.cancel(request.clone()).await.map(shown),
            Self::List(request) => raw.list(request.clone()).await.map(shown),
            Self::Inspect(request) => raw.inspect(request.clone()).await.map(shown),
            Self::Watch(request) => raw.watch_events(request.clone()).await.map(shown),
            Self::Wait(request) => raw.wait(request.clone()).await.map(shown),
            Self::Read(request) => raw.read_output(request.clone()).await.map(shown),
            Self::Remove(request) => raw.remove(request.clone()).await.map(shown),
            Self::UpdateQueue(request) => raw.update_queue(request.clone()).await.map(shown),
        }
    }
}

/// A request with a field that cannot be used.
fn bad(field: &str, call: Call) -> Case {
    let what: String = format!("{field}: {call:?}").chars().take(300).collect();
    let field = Some(field.to_owned());
    Case {
        what,
        call,
        code: Code::InvalidArgument,
        reason: "INVALID_FIELD",
        field,
    }
}

/// A request that is refused for another reason.
fn refused(code: Code, reason: &'static str, call: Call) -> Case {
    let what: String = format!("{call:?}").chars().take(300).collect();
    Case {
        what,
        call,
        code,
        reason,
        field: None,
    }
}

fn not_found(call: Call) -> Case {
    refused(Code::NotFound, "TASK_NOT_FOUND", call)
}

/// Spans that are negative or malformed.
fn bad_spans() -> [Duration; 5] {
    [(-1, 0), (0, -1), (1, -1), (-1, 1), (0, 1_000_000_000)]
        .map(|(seconds, nanos)| Duration { seconds, nanos })
}

/// What is no id, and what is one of nobody.
const NOT_IDS: [&str; 5] = [
    "shell-aaaaaaaaaa",
    "shell-AAAAAAAAAA",
    "nonsense",
    "../../etc/passwd",
    "shell-\n\x1b[2J",
];

fn text(bytes: usize) -> String {
    "x".repeat(bytes)
}

fn entry(key: &str, value: &str) -> std::collections::BTreeMap<String, String> {
    [(key.to_owned(), value.to_owned())].into()
}
