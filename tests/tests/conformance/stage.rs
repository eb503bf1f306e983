//! The daemon and the directory of a case, and the steps that need no client.

use std::{collections::BTreeSet, fmt, fs, marker::PhantomData, pin::Pin, sync::Mutex};

use heeler_tests::{Daemon, Process, eventually};
use nix::sys::signal::Signal;
use serde_json::Value;
use tokio::sync::RwLock;

use crate::case::{Case, Expected, Fields, Names, mismatch, stored};

/// The result of a case.
#[derive(Debug)]
pub(crate) enum Verdict {
    Passed,
    Failed(String),
    Cannot(String),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => write!(f, "passed"),
            Self::Failed(why) => write!(f, "failed: {why}"),
            Self::Cannot(why) => write!(f, "cannot: {why}"),
        }
    }
}

/// The end of a step.
#[derive(Debug)]
pub(crate) enum Outcome {
    Result(Value),
    /// A refusal: code, reason, field, metadata.
    Error(Value),
    /// The client has no way to do the step.
    Cannot(String),
}

/// A client that does steps.
pub(crate) trait Client: Send + Sync + Sized + 'static {
    fn connect(daemon: &Daemon) -> impl Future<Output = Self> + Send;

    /// Does a step. `during` has the steps to run while it goes on.
    fn step<'a>(
        &'a self,
        what: &'a str,
        with: Fields,
        during: During<'a, Self>,
    ) -> impl Future<Output = Outcome> + Send + 'a;
}

/// The steps that run while another goes on.
pub(crate) struct During<'a, C> {
    stage: &'a Stage<C>,
    steps: Vec<Value>,
}

/// The surroundings of one case.
pub(crate) struct Stage<C> {
    daemon: RwLock<Daemon>,
    names: Mutex<Names>,
    /// The files that steps have created.
    touched: Mutex<BTreeSet<String>>,
    client: PhantomData<C>,
}

impl<'a, C: Client> During<'a, C> {
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Runs the steps. Boxed, because a step may contain steps.
    pub(crate) fn run(
        self,
        client: &'a C,
    ) -> Pin<Box<dyn Future<Output = Result<(), Verdict>> + Send + 'a>> {
        Box::pin(self.stage.steps(client, self.steps))
    }
}

impl<C: Client> Stage<C> {
    /// Runs a case.
    pub(crate) async fn run(case: Case) -> Verdict {
        let mut builder = Daemon::builder();
        for arg in &case.serve {
            builder = builder.arg(arg);
        }
        let daemon = builder.start().await;
        let client = C::connect(&daemon).await;
        let dir = daemon.file("case");
        fs::create_dir(&dir).expect("a new directory");
        let mut names = Names::default();
        names.set("DIR", dir);
        let stage = Self {
            daemon: RwLock::new(daemon),
            names: names.into(),
            touched: Mutex::default(),
            client: PhantomData,
        };
        let done = Box::pin(stage.steps(&client, case.steps)).await;
        end_abandoned(&*stage.daemon.read().await).await;
        match done {
            Ok(()) => Verdict::Passed,
            Err(other) => other,
        }
    }

    async fn steps(&self, client: &C, steps: Vec<Value>) -> Result<(), Verdict> {
        for step in steps {
            let named = step.to_string();
            let wrong = |why: String| Verdict::Failed(format!("{named}: {why}"));
            let mut step = Fields::of(step);
            let (what, keep) = (step.text("do"), step.take("as"));
            let with = self.fill(&step.take("with").unwrap_or_default());
            let outcome = Box::pin(self.step(client, &what, Fields::of(with))).await?;
            // Filled in only now: the steps of `during` have stored values too.
            let expected = match (step.take("expect"), step.take("error")) {
                (_, Some(error)) => Expected::Error(self.fill(&error)),
                (expect, None) => Expected::Result(self.fill(&expect.unwrap_or_default())),
            };
            step.none_left();
            let found = match outcome {
                Outcome::Result(found) => {
                    if let Some(Value::String(name)) = keep {
                        let value = stored(&what, &found).expect("a value to store");
                        self.names.lock().expect("no panic").set(&name, value);
                    }
                    Ok(found)
                }
                Outcome::Error(error) => Err(error),
                Outcome::Cannot(why) => return Err(Verdict::Cannot(why)),
            };
            let problem = match (expected, found) {
                (Expected::Result(Value::Null), Ok(_)) => None,
                (Expected::Result(expected), Ok(found)) => {
                    // The value that `as` has just stored may be expected.
                    mismatch(&self.fill(&expected), &found, "result")
                }
                (Expected::Error(expected), Err(found)) => mismatch(&expected, &found, "error"),
                (Expected::Result(_), Err(error)) => Some(format!("refused: {error}")),
                (Expected::Error(_), Ok(found)) => Some(format!("not refused: {found}")),
            };
            if let Some(problem) = problem {
                return Err(wrong(problem));
            }
        }
        Ok(())
    }

    async fn step<'a>(
        &'a self,
        client: &'a C,
        what: &'a str,
        mut with: Fields,
    ) -> Result<Outcome, Verdict> {
        match what {
            "restart" => {
                let mut daemon = self.daemon.write().await;
                match with.text("signal").as_str() {
                    "KILL" => drop(daemon.kill9()),
                    "TERM" => daemon.terminate(),
                    other => panic!("no signal {other}"),
                }
                daemon.restart().await;
            }
            "touch" => {
                let file = with.text("file");
                fs::write(&file, "").expect("a writable directory");
                self.touched.lock().expect("no panic").insert(file);
            }
            "await" => {
                let file = with.text("file");
                let touched = self.touched.lock().expect("no panic").contains(&file);
                let there = || fs::metadata(&file).is_ok_and(|found| touched || found.len() > 0);
                eventually(&file, there).await;
            }
            "gone" => {
                let text = fs::read_to_string(with.text("file")).expect("process ids");
                for pid in text.lines() {
                    let pid = pid.parse().expect("a process id");
                    if let Some(process) = Process::now(pid).filter(Process::is_alive) {
                        return Err(Verdict::Failed(format!("still there: {process:?}")));
                    }
                }
            }
            _ => {
                let steps = match with.take("during") {
                    Some(Value::Array(steps)) => steps,
                    Some(other) => panic!("not steps: {other}"),
                    None => Vec::new(),
                };
                let during = During { stage: self, steps };
                return Ok(client.step(what, with, during).await);
            }
        }
        with.none_left();
        Ok(Outcome::Result(Value::Null))
    }

    fn fill(&self, value: &Value) -> Value {
        self.names.lock().expect("no panic").fill(value)
    }
}

/// Kills the processes that tasks have abandoned: the daemon leaves them alone, and the clean-up of a
/// test reports them.
async fn end_abandoned(daemon: &Daemon) {
    let tasks = daemon.api().await.all().await;
    let abandoned = tasks.iter().flat_map(|task| &task.abandoned);
    let pids: BTreeSet<i32> = abandoned.map(|process| process.pid).collect();
    let mut left = daemon.processes();
    left.retain(|process| pids.contains(&process.pid));
    for process in &left {
        process.signal(Signal::SIGKILL);
    }
    let gone = || left.iter().all(Process::is_gone);
    eventually("the end of abandoned processes", gone).await;
}
