//! One MCP connection: the daemon behind it, the session it belongs to, the tasks it may reach, and how
//! far its client has read each output.

mod daemon;
mod owner;
mod read_marks;
mod session;

use std::{
    collections::BTreeSet,
    ops::Range,
    path::PathBuf,
    sync::{Mutex, OnceLock, PoisonError},
    time::Duration,
};

use heeler_client::{
    Address, CancellationToken, Client, ConnectOptions, Filter, ListOptions, v1::BackgroundTask,
};
use rmcp::{RoleServer, model::Implementation, service::RequestContext};
use tokio::time::Instant;

use crate::{problem::Problem, time_limit::LONGEST_CALL, view::cut};
use daemon::Daemon;
use owner::Owner;
use read_marks::ReadMarks;

/// The longest name that the daemon accepts, in bytes.
const LONGEST_NAME: usize = 16 * 1024;
/// The most characters of an unknown id or name that an error repeats.
const LONGEST_SHOWN: usize = 100;
/// The most ids that the daemon accepts in one call.
pub(crate) const MOST_IDS: u16 = 1000;
/// The most tasks of other sessions that `ensure` makes reachable for one connection.
const MOST_SHARED: usize = 1000;

/// The options of a server.
#[derive(Debug, Clone)]
pub struct Options {
    /// The daemon. `None`: the one that the environment names, else the user's own, which is started if it
    /// does not run.
    pub address: Option<Address>,
    pub connect: ConnectOptions,
    /// The session. `None`: named after the client and the directory.
    pub session: Option<String>,
    pub reach: Reach,
    pub at_the_end: AtTheEnd,
    /// The directory in which tasks start unless a call says otherwise: an absolute path.
    pub directory: PathBuf,
    /// Variables that every task gets.
    pub env: Vec<(String, String)>,
}

/// The tasks that the tools reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Those of the session.
    Session,
    /// Every task of the daemon.
    All,
}

/// The fate of the session's tasks when the client, and every other owner of the session, is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtTheEnd {
    /// They go on.
    KeepTasks,
    /// They are cancelled.
    CancelTasks,
}

/// The state of a connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) options: Options,
    daemon: Daemon,
    session: OnceLock<String>,
    owner: Owner,
    pub(crate) read: Mutex<ReadMarks>,
    /// Tasks of other sessions that `ensure` has returned.
    shared: Mutex<BTreeSet<String>>,
    /// Tasks that the last wait for the session has left.
    awaited: Mutex<Vec<String>>,
    /// Cancelled when the client has closed the connection.
    pub(crate) closed: CancellationToken,
}

impl Connection {
    pub(crate) fn new(options: Options, closed: CancellationToken) -> Self {
        Self {
            daemon: Daemon::new(options.address.clone(), options.connect.clone()),
            options,
            session: OnceLock::new(),
            owner: Owner::default(),
            read: Mutex::default(),
            shared: Mutex::default(),
            awaited: Mutex::default(),
            closed,
        }
    }

    /// The daemon, connected to on first use and again after it was gone.
    pub(crate) async fn client(&self) -> Result<Client, Problem> {
        self.daemon.client().await
    }

    /// Makes the next call look for the daemon, and start the user's own, if this error says that it is gone.
    pub(crate) fn noted(&self, problem: Problem) -> Problem {
        if problem.is_daemon_gone() {
            self.daemon.forget();
        }
        match (problem, &self.options.address) {
            (Problem::Daemon(error), Some(_))
                if error.is_transient() && error.refusal().is_none() =>
            {
                Problem::Away(error)
            }
            (problem, _) => problem,
        }
    }

    /// The session, named by the first request.
    pub(crate) fn session(&self, client: Option<&Implementation>) -> &str {
        self.session.get_or_init(|| match &self.options.session {
            Some(session) => session.clone(),
            None => session::name(client.map(|client| &*client.name), &self.options.directory),
        })
    }

    /// Offset up to which the client has read a task's output.
    pub(crate) fn read_up_to(&self, id: &str) -> u64 {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.get(id)
    }

    pub(crate) fn mark_read(&self, id: &str, part: Range<u64>) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.add(id, part);
    }

    /// Makes a task reachable, whatever its session.
    pub(crate) fn share(&self, id: &str) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.len() < MOST_SHARED {
            shared.insert(id.to_owned());
        }
    }

    /// Remembers the tasks that a wait for the session has left: those before it are forgotten.
    pub(crate) fn await_end_of(&self, ids: impl Iterator<Item = String>) {
        let mut awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        *awaited = ids.take(MOST_IDS.into()).collect();
    }

    pub(crate) fn awaited(&self) -> Vec<String> {
        let awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        awaited.clone()
    }

    fn is_shared(&self, id: &str) -> bool {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.contains(id)
    }
}

/// One request: the connection, the daemon and the client's side of the call.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) client: Client,
    pub(crate) request: &'a RequestContext<RoleServer>,
    pub(crate) begun: Instant,
}

impl<'a> Call<'a> {
    pub(crate) async fn begin(
        connection: &'a Connection,
        request: &'a RequestContext<RoleServer>,
    ) -> Result<Self, Problem> {
        let begun = Instant::now();
        let session = connection.session(request.client_info().as_ref());
        let client = connection.client().await?;
        match connection.options.at_the_end {
            AtTheEnd::KeepTasks => {}
            // Before anything can be started.
            AtTheEnd::CancelTasks => {
                let (owner, closed) = (&connection.owner, &connection.closed);
                owner.ensure(&client, session, closed).await?;
            }
        }
        Ok(Self {
            client,
            connection,
            request,
            begun,
        })
    }

    /// The time by which a tool answers, whatever it waits for.
    pub(crate) fn deadline(&self) -> Instant {
        self.begun + LONGEST_CALL
    }

    /// The time that is left to wait.
    pub(crate) fn time_left(&self) -> Duration {
        self.deadline().saturating_duration_since(Instant::now())
    }

    pub(crate) fn session(&self) -> &'a str {
        let client = self.request.client_info();
        self.connection.session(client.as_ref())
    }

    /// The name under which the daemon records what this client asked for.
    pub(crate) fn actor(&self) -> String {
        let name = self.request.client_info().map(|client| client.name);
        let mut actor = format!("MCP: {}", name.as_deref().unwrap_or("unknown client"));
        actor.truncate(actor.floor_char_boundary(256));
        actor
    }

    /// The tasks within reach.
    pub(crate) fn reachable(&self) -> Filter {
        match self.connection.options.reach {
            Reach::Session => Filter::all().session(self.session()),
            Reach::All => Filter::all(),
        }
    }

    /// Completes when the client has cancelled the request or closed the connection.
    pub(crate) async fn abandoned(&self) {
        tokio::select! {
            () = self.request.ct.cancelled() => {}
            () = self.connection.closed.cancelled() => {}
        }
    }

    /// The task that a word names: an id, or the name of one live task within reach, else of the newest that has ended.
    pub(crate) async fn task(&self, word: &str) -> Result<BackgroundTask, Problem> {
        let unknown = || unknown(word);
        if !looks_like_id(word) {
            return self.named(word).await;
        }
        let task = match self.client.task(word).get().await {
            Err(error) if error.refusal().is_some_and(is_not_found) => return Err(unknown()),
            answer => answer?,
        };
        let session = task.spec.as_ref().map_or("", |spec| &spec.session_id);
        let reachable = match self.connection.options.reach {
            Reach::All => true,
            Reach::Session => session == self.session() || self.connection.is_shared(&task.id),
        };
        match reachable {
            true => Ok(task),
            false => Err(unknown()),
        }
    }

    pub(crate) async fn tasks(&self, words: &[String]) -> Result<Vec<BackgroundTask>, Problem> {
        let mut tasks = Vec::with_capacity(words.len());
        for word in words {
            tasks.push(self.task(word).await?);
        }
        Ok(tasks)
    }

    async fn named(&self, word: &str) -> Result<BackgroundTask, Problem> {
        let unknown = || unknown(word);
        if word.is_empty() || word.len() > LONGEST_NAME {
            return Err(unknown());
        }
        let named = self.reachable().name(word);
        let page = ListOptions::live().matching(named.clone());
        let mut found = self.client.list_page(page).await?.tasks.into_iter();
        match (found.next(), found.next()) {
            (Some(task), None) => Ok(task),
            (None, _) => {
                let ended = ListOptions::all().with_finished_foreground();
                let newest = ended.matching(named).page_size(1);
                let newest = self.client.list_page(newest).await?.tasks;
                newest.into_iter().next().ok_or_else(unknown)
            }
            (Some(first), Some(second)) => Err(Problem::Ambiguous {
                word: cut(word, LONGEST_SHOWN),
                ids: [first, second]
                    .into_iter()
                    .chain(found)
                    .map(|task| task.id)
                    .collect(),
            }),
        }
    }
}

fn unknown(word: &str) -> Problem {
    Problem::NoTask {
        word: cut(word, LONGEST_SHOWN),
    }
}

/// True if there is no task with the id, or the id can be none.
pub(crate) fn is_not_found(refusal: &heeler_client::Refusal) -> bool {
    use heeler_client::v1::ErrorReason::{InvalidField, TaskNotFound};
    refusal.is(TaskNotFound) || refusal.is(InvalidField)
}

/// Returns whether a word has the form of an id: a kind, a dash and base32.
fn looks_like_id(word: &str) -> bool {
    let Some((kind, number)) = word.split_once('-') else {
        return false;
    };
    matches!(kind, "shell" | "agent" | "hosted")
        && number.len() == 10
        && number
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'2'..=b'7'))
}
