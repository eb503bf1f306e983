//! Bad requests: every field has a refusal that names it, and a refused call changes nothing: no task,
//! no process, no file, no descriptor.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cancel_list_watch;
mod filter;
mod output;
mod queue;
mod ready;
mod restart;
mod rules;
mod spawn;
mod wait_read_remove;

use std::{collections::BTreeSet, path::PathBuf};

use heeler_tests::{
    Api, Daemon, Fixture, Refusal, argv, disk::paths_below, eventually, process::descriptors, v1::*,
};
use prost_types::Duration;
use tonic::{Code, Status};

/// The rounds of calls in which descriptors may be left for other reasons.
const ROUNDS: usize = 5;

/// A daemon with one running and one finished task.
struct Edge {
    daemon: Daemon,
    api: Api,
    running: Fixture,
    finished: String,
    before: World,
}

/// Everything that a refused call might change.
#[derive(Debug, PartialEq)]
struct World {
    tasks: Vec<BackgroundTask>,
    revision: u64,
    processes: usize,
    /// Files and directories of the state directory.
    paths: BTreeSet<PathBuf>,
}

impl Edge {
    async fn new() -> Self {
        let daemon = Daemon::start().await;
        let api = daemon.api().await;
        let running = daemon.run(&api, "forever").await;
        let finished = api.start(argv(["true"])).await.id;
        api.ended(&finished).await;
        eventually("one shim and one leader", || daemon.processes().len() == 2).await;
        let before = World::of(&daemon, &api).await;
        Self {
            daemon,
            api,
            running,
            finished,
            before,
        }
    }

    /// Makes every call, checks the refusals, and compares the world before and after. Descriptors may be
    /// opened for other reasons, such as a shim that is started ahead, but not in every round.
    async fn refuses(self, cases: Vec<Case>) {
        let pid = self.daemon.pid();
        let mut leaves_descriptors = true;
        for _ in 0..ROUNDS {
            let open = descriptors(pid);
            self.round(&cases).await;
            leaves_descriptors = !settles(|| descriptors(pid) <= open).await;
            if !leaves_descriptors {
                break;
            }
        }
        assert!(!leaves_descriptors, "{}", descriptors(pid));
        assert_eq!(World::of(&self.daemon, &self.api).await, self.before);
    }

    async fn round(&self, cases: &[Case]) {
        for case in cases {
            let status = match case.call.clone().make(&self.api).await {
                Ok(answer) => panic!("{}: not refused: {answer}", case.what),
                Err(status) => status,
            };
            let refusal = Refusal::of(&status);
            let found = (refusal.code, &*refusal.reason);
            assert_eq!(
                found,
                (case.code, case.reason),
                "{}: {refusal:?}",
                case.what
            );
            let named = refusal.fields.first().map(String::as_str);
            assert_eq!(named, case.field.as_deref(), "{}: {refusal:?}", case.what);
        }
    }
}

/// Waits some seconds for a condition; returns whether it was met.
async fn settles(condition: impl Fn() -> bool) -> bool {
    for _ in 0..60 {
        if condition() {
            return true;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    false
}

impl World {
    async fn of(daemon: &Daemon, api: &Api) -> Self {
        let paths = paths_below(&daemon.state_dir()).into_iter().collect();
        Self {
            tasks: api.all().await,
            revision: api.revision().await,
            processes: daemon.processes().len(),
            paths,
        }
    }
}

/// A bad request, and the expected refusal.
struct Case {
    what: String,
    call: Call,
    code: Code,
    reason: &'static str,
    field: Option<String>,
}

#[derive(Debug, Clone)]
#[allow(
    clippy::large_enum_variant,
    reason = "a few dozen values, each used once"
)]
enum Call {
    Spawn(SpawnRequest),
    Cancel(CancelRequest),
    Detach(DetachRequest),
    List(ListRequest),
    Inspect(InspectRequest),
    Watch(WatchEventsRequest),
    Wait(WaitRequest),
    Read(ReadOutputRequest),
    Remove(RemoveRequest),
    UpdateQueue(UpdateQueueRequest),
    Follow(FollowOutputRequest),
    Update(UpdateTaskRequest),
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
            Self::Detach(request) => raw.detach(request.clone()).await.map(shown),
            Self::List(request) => raw.list(request.clone()).await.map(shown),
            Self::Inspect(request) => raw.inspect(request.clone()).await.map(shown),
            Self::Watch(request) => raw.watch_events(request.clone()).await.map(shown),
            Self::Wait(request) => raw.wait(request.clone()).await.map(shown),
            Self::Read(request) => raw.read_output(request.clone()).await.map(shown),
            Self::Remove(request) => raw.remove(request.clone()).await.map(shown),
            Self::UpdateQueue(request) => raw.update_queue(request.clone()).await.map(shown),
            Self::Follow(request) => raw.follow_output(request.clone()).await.map(shown),
            Self::Update(request) => raw.update_task(request.clone()).await.map(shown),
        }
    }
}

/// A request with an invalid field.
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

/// Negative and malformed durations.
fn bad_spans() -> [Duration; 5] {
    [(-1, 0), (0, -1), (1, -1), (-1, 1), (0, 1_000_000_000)]
        .map(|(seconds, nanos)| Duration { seconds, nanos })
}

/// Texts that are not ids, and an id that no task has.
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
