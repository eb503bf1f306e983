//! The daemon and the directory that a case has for itself, and the steps that no client is needed for.

use std::{fmt, fs, marker::PhantomData, pin::Pin};

use heeler_tests::{Daemon, Process, eventually};
use serde_json::Value;
use tokio::sync::RwLock;

use crate::case::{Case, Expected, Fields, Names, mismatch};

/// How a case went.
#[derive(Debug)]
pub(crate) enum Played {
    Passed,
    Failed(String),
    Cannot(String),
}

impl fmt::Display for Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => write!(f, "passed"),
            Self::Failed(why) => write!(f, "failed: {why}"),
            Self::Cannot(why) => write!(f, "cannot: {why}"),
        }
    }
}

/// What came of a step.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// A result, and what `as` keeps of it.
    Result(Value, Option<String>),
    /// A refusal: code, reason, field, metadata.
    Error(Value),
    /// The client has no way to do it.
    Cannot(String),
}

/// Somebody who can do steps.
pub(crate) trait Client: Send + Sync + Sized + 'static {
    fn connect(daemon: &Daemon) -> impl Future<Output = Self> + Send;

    /// Does a step that is the client's; those within it are done by whoever is given.
    fn step<'a>(
        &'a self,
        what: &'a str,
        with: Fields,
        during: During<'a, Self>,
    ) -> impl Future<Output = Outcome> + Send + 'a;
}

/// The steps that are done while another goes on.
pub(crate) struct During<'a, C> {
    stage: &'a Stage<C>,
    steps: Vec<Value>,
}

/// What each case has for itself.
pub(crate) struct Stage<C> {
    daemon: RwLock<Daemon>,
    names: std::sync::Mutex<Names>,
    client: PhantomData<C>,
}

impl<'a, C: Client> During<'a, C> {
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Boxed, for it is part of a step that it consists of.
    pub(crate) fn play(
        self,
        client: &'a C,
    ) -> Pin<Box<dyn Future<Output = Result<(), Played>> + Send + 'a>> {
        Box::pin(self.stage.steps(client, self.steps))
    }
}

impl<C: Client> Stage<C> {
    /// Plays a case from beginning to end.
    pub(crate) async fn play(case: Case) -> Played {
        let mut builder = Daemon::builder();
        for arg in &case.serve {
            builder = builder.arg(arg);
        }
        let daemon = builder.start().await;
        let client = C::connect(&daemon).await;
        let dir = daemon.file("case");
        fs::create_dir(&dir).expect("room");
        let mut names = Names::default();
        names.set("DIR", dir);
        let stage = Self {
            daemon: RwLock::new(daemon),
            names: names.into(),
            client: PhantomData,
        };
        match Box::pin(stage.steps(&client, case.steps)).await {
            Ok(()) => Played::Passed,
            Err(other) => other,
        }
    }

    async fn steps(&self, client: &C, steps: Vec<Value>) -> Result<(), Played> {
        for step in steps {
            let named = step.to_string();
            let wrong = |why: String| Played::Failed(format!("{named}: {why}"));
            let mut step = Fields::of(step);
            let (what, keep) = (step.text("do"), step.take("as"));
            let with = self.fill(&step.take("with").unwrap_or_default());
            let outcome = Box::pin(self.step(client, &what, Fields::of(with))).await?;
            // By now what the steps within have named is known too.
            let expected = match (step.take("expect"), step.take("error")) {
                (_, Some(error)) => Expected::Error(self.fill(&error)),
                (expect, None) => Expected::Result(self.fill(&expect.unwrap_or_default())),
            };
            step.none_left();
            let found = match outcome {
                Outcome::Result(found, value) => {
                    if let (Some(Value::String(name)), Some(value)) = (keep, value) {
                        self.names.lock().expect("whole").set(&name, value);
                    }
                    Ok(found)
                }
                Outcome::Error(error) => Err(error),
                Outcome::Cannot(why) => return Err(Played::Cannot(why)),
            };
            let problem = match (expected, found) {
                (Expected::Result(Value::Null), Ok(_)) => None,
                (Expected::Result(expected), Ok(found)) => {
                    // What `as` has just kept may be part of what is expected.
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
    ) -> Result<Outcome, Played> {
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
            "touch" => drop(fs::write(with.text("file"), "touched")),
            "await" => {
                let file = with.text("file");
                let there = || fs::metadata(&file).is_ok_and(|found| found.len() > 0);
                eventually(&file, there).await;
            }
            "gone" => {
                let text = fs::read_to_string(with.text("file")).expect("ids of processes");
                for pid in text.lines() {
                    let pid = pid.parse().expect("an id of a process");
                    if let Some(process) = Process::now(pid).filter(Process::is_alive) {
                        return Err(Played::Failed(format!("still there: {process:?}")));
                    }
                }
            }
            _ => {
                let steps = match with.take("during") {
                    Some(Value::Array(steps)) => steps,
                    Some(other) => panic!("no steps: {other}"),
                    None => Vec::new(),
                };
                let during = During { stage: self, steps };
                return Ok(client.step(what, with, during).await);
            }
        }
        with.none_left();
        Ok(Outcome::Result(Value::Null, None))
    }

    fn fill(&self, value: &Value) -> Value {
        self.names.lock().expect("whole").fill(value)
    }
}
