//! Tasks from a client's view: started by Spawn, and finished when WatchEvents reports it.

use std::{
    collections::HashMap,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use heeler_proto::v1::{
    ArgvCommand, OutputPolicy, SpawnRequest, TaskEventType, TaskFilter, TaskSpec, TerminalPolicy,
    WatchEventsRequest, task_spec::Command, watch_events_response::Item,
};
use tokio::{
    sync::oneshot,
    task::{JoinHandle, JoinSet},
};

use crate::{
    Result,
    measured::connection::{self, Stub},
};

/// Number of concurrent callers, each on a connection of its own.
const CALLERS: usize = 16;

/// Maximum time until an end is reported.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// A request for a program.
fn request(args: &[&str]) -> SpawnRequest {
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    let spec = TaskSpec {
        command: Some(Command::Argv(ArgvCommand { args })),
        working_directory: "/".to_owned(),
        ..TaskSpec::default()
    };
    SpawnRequest {
        request_id: String::new(),
        spec: Some(spec),
    }
}

/// The filter that selects one task.
pub(crate) fn named(id: String) -> TaskFilter {
    TaskFilter {
        task_ids: vec![id],
        ..TaskFilter::default()
    }
}

/// The use of a `request_id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    /// None: the smallest possible Spawn.
    Unnamed,
    /// A fresh one, as the SDKs and the command send it.
    Named,
}

/// Starts a task and returns its id.
pub(crate) async fn spawn(stub: &mut Stub, args: &[&str]) -> Result<String> {
    spawn_as(stub, args, Naming::Unnamed).await
}

/// Starts a task and returns its id.
pub(crate) async fn spawn_as(stub: &mut Stub, args: &[&str], naming: Naming) -> Result<String> {
    let mut request = request(args);
    if naming == Naming::Named {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        request.request_id = format!("heeler-bench-{}-{number}", std::process::id());
    }
    start(stub, request).await
}

/// Starts a task of a session and returns its id.
pub(crate) async fn spawn_in(stub: &mut Stub, args: &[&str], session: &str) -> Result<String> {
    let mut request = request(args);
    request.spec.get_or_insert_default().session_id = session.to_owned();
    start(stub, request).await
}

/// Starts a task whose output may take so many bytes of disk, and returns its id.
pub(crate) async fn spawn_limited(
    stub: &mut Stub,
    args: &[&str],
    max_bytes: u64,
) -> Result<String> {
    let mut request = request(args);
    request.spec.get_or_insert_default().output = Some(OutputPolicy {
        max_bytes,
        ..OutputPolicy::default()
    });
    start(stub, request).await
}

/// Starts a task with a terminal and returns its id.
pub(crate) async fn spawn_on_terminal(
    stub: &mut Stub,
    args: &[&str],
    terminal: TerminalPolicy,
) -> Result<String> {
    let mut request = request(args);
    request.spec.get_or_insert_default().terminal = Some(terminal);
    start(stub, request).await
}

async fn start(stub: &mut Stub, request: SpawnRequest) -> Result<String> {
    let task = stub.spawn(request).await?.into_inner().task;
    Ok(task.ok_or("an answer without a task")?.id)
}

/// Starts this many tasks that sleep.
pub(crate) async fn sleepers(socket: &Path, count: usize) -> Result {
    let left = Arc::new(AtomicUsize::new(count));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (mut stub, left) = (connection::stub(socket).await?, Arc::clone(&left));
        callers.spawn(async move {
            while take(&left) {
                spawn(&mut stub, &["/bin/sleep", "1000"]).await?;
            }
            Ok(())
        });
    }
    join(callers).await
}

/// Runs this many tasks as fast as the daemon accepts them; returns the rate of ends per second.
pub(crate) async fn throughput(
    socket: &Path,
    program: &str,
    naming: Naming,
    count: usize,
) -> Result<f64> {
    let ends = Ends::watch(socket).await?;
    let left = Arc::new(AtomicUsize::new(count));
    let mut stubs = Vec::new();
    for _ in 0..CALLERS {
        stubs.push(connection::stub(socket).await?);
    }
    let begun = Instant::now();
    let mut callers = JoinSet::new();
    for mut stub in stubs {
        let (left, ends, program) = (Arc::clone(&left), ends.clone(), program.to_owned());
        callers.spawn(async move {
            while take(&left) {
                let id = spawn_as(&mut stub, &[&program], naming).await?;
                ends.of(&id).await?;
            }
            Ok(())
        });
    }
    join(callers).await?;
    Ok(count as f64 / begun.elapsed().as_secs_f64())
}

fn take(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
        left.checked_sub(1)
    })
    .is_ok()
}

async fn join(mut callers: JoinSet<Result>) -> Result {
    while let Some(ended) = callers.join_next().await {
        ended??;
    }
    Ok(())
}

/// The ends of all tasks, from one stream that clones share.
#[derive(Debug, Clone)]
pub(crate) struct Ends {
    board: Arc<Mutex<HashMap<String, Notice>>>,
    _reader: Arc<Reader>,
}

/// The state of a task's end.
#[derive(Debug)]
enum Notice {
    Ended,
    Awaited(oneshot::Sender<()>),
}

/// Stops reading with the last clone.
#[derive(Debug)]
struct Reader(JoinHandle<()>);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Ends {
    /// Watches from now on.
    pub(crate) async fn watch(socket: &Path) -> Result<Self> {
        let types = vec![TaskEventType::Ended.into()];
        let request = WatchEventsRequest {
            types,
            ..WatchEventsRequest::default()
        };
        let mut stream = connection::stub(socket)
            .await?
            .watch_events(request)
            .await?
            .into_inner();
        // The first message is a bookmark: no later event is missed.
        stream.message().await?;
        let board: Arc<Mutex<HashMap<String, Notice>>> = Arc::default();
        let shared = Arc::clone(&board);
        let reader = tokio::spawn(async move {
            while let Ok(Some(message)) = stream.message().await {
                if let Some(Item::Event(event)) = message.item {
                    put_up(&shared, event.task.unwrap_or_default().id);
                }
            }
        });
        Ok(Self {
            board,
            _reader: Arc::new(Reader(reader)),
        })
    }

    /// Waits until this task is finished.
    pub(crate) async fn of(&self, id: &str) -> Result {
        let told = {
            let mut board = lock(&self.board);
            if let Some(Notice::Ended) = board.remove(id) {
                return Ok(());
            }
            let (tell, told) = oneshot::channel();
            board.insert(id.to_owned(), Notice::Awaited(tell));
            told
        };
        Ok(tokio::time::timeout(TIME_LIMIT, told).await??)
    }
}

fn put_up(board: &Mutex<HashMap<String, Notice>>, id: String) {
    let mut board = lock(board);
    match board.remove(&id) {
        Some(Notice::Awaited(tell)) => drop(tell.send(())),
        Some(Notice::Ended) | None => drop(board.insert(id, Notice::Ended)),
    }
}

/// No operation under the lock can fail half-way.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
