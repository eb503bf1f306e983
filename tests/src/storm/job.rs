//! One thing to be done under a storm: a task of which it is known beforehand what it writes, how it
//! ends and how often its command may run, which is once.

use heeler_proto::v1::{
    BackgroundTask, DisconnectAction, ForegroundTimeoutAction, Placement, SpawnRequest, TaskState,
    outcome::Result::{self as Outcome, ExitCode, Signal},
};
use prost_types::Duration;

use super::chance::Chance;
use crate::{SpawnRequestExt as _, argv, millis, pattern, secs};

/// A task to be.
#[derive(Debug, Clone)]
pub struct Job {
    /// Its name, and its request id.
    pub name: String,
    /// What is asked for.
    pub request: SpawnRequest,
    pub placement: Placement,
    /// How it ends.
    pub ending: Ending,
    /// All that it writes.
    pub output: Vec<u8>,
}

/// How a job ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this code.
    Exits(i32),
    /// By a signal that it sends to itself.
    Dies,
    /// By a cancel, whenever that comes; what it has written by then is a part of its output.
    Cancelled,
    /// By its deadline; the same holds.
    TimesOut,
}

/// What every job is made of.
#[derive(Debug, Clone)]
pub struct Workshop {
    /// The child that misbehaves on request.
    pub fixture: String,
    /// The file in which every leader says that it has begun.
    pub ran: String,
}

impl Job {
    /// A job of some kind.
    pub fn any(workshop: &Workshop, number: u64, chance: &mut Chance) -> Self {
        let name = format!("job-{number}");
        let code = *chance.pick(&[0, 0, 1, 7, 42, 255]);
        let pause = chance.within(1..250);
        let (mut steps, mut ending) = (format!("print {name}"), Ending::Exits(code));
        let mut output = format!("{name}\n").into_bytes();
        match chance.within(0..8) {
            0 | 1 => {}
            2 => {
                let size = chance.within(1..300_000) as usize;
                steps = format!("bytes {size}");
                output = pattern(size);
            }
            3 => {
                for line in 1..chance.within(2..10) {
                    steps += &format!(" sleep {} print {name}-{line}", pause / 2);
                    output.extend(format!("{name}-{line}\n").into_bytes());
                }
            }
            // The one that hides outlives the leader, and is heard.
            4 => {
                steps += &format!(" double-fork [ setsid sleep {pause} print hidden ]");
                output.extend(b"hidden\n");
            }
            5 => ending = Ending::Dies,
            6 => ending = Ending::Cancelled,
            _ => ending = Ending::TimesOut,
        }
        match ending {
            Ending::Exits(code) => steps += &format!(" exit {code}"),
            Ending::Dies => steps += " die KILL",
            Ending::Cancelled if chance.once_in(2) => {
                steps = format!("ignore TERM double-fork [ setsid forever ] {steps} forever");
            }
            Ending::Cancelled | Ending::TimesOut => steps += " forever",
        }
        let foreground = chance.once_in(3);
        let script = format!("pids {} pid {name} {steps}", workshop.ran);
        let words = [&*workshop.fixture].into_iter().chain(script.split(' '));
        let request = argv(words)
            .with_request_id(&name)
            .with_name(&name)
            .with_session(format!("session-{}", number % 3));
        let timeout = (ending == Ending::TimesOut).then(|| millis(pause));
        let request = match timeout {
            Some(timeout) => request.with_timeout(timeout),
            None => request,
        };
        let (request, placement) = match foreground {
            true => (in_foreground(request, timeout), Placement::Foreground),
            false => (request, Placement::Background),
        };
        Self {
            name,
            request,
            placement,
            ending,
            output,
        }
    }

    /// What is wrong with how it has ended.
    pub fn check_end(&self, task: &BackgroundTask) -> Option<String> {
        let outcome = task
            .outcome
            .as_ref()
            .and_then(|outcome| outcome.result.as_ref());
        let true_end = match (self.ending, task.state(), outcome) {
            (Ending::Exits(0), TaskState::Completed, Some(ExitCode(0))) => true,
            (Ending::Exits(expected), TaskState::Failed, Some(ExitCode(code))) => *code == expected,
            (Ending::Dies, TaskState::Failed, Some(Signal(signal))) => signal.number == 9,
            (Ending::Cancelled, TaskState::Cancelled, Some(Signal(_)))
            | (Ending::TimesOut, TaskState::TimedOut, Some(Signal(_))) => true,
            _ => false,
        };
        let wrong = || format!("{}: {:?} ended {task:?}", self.name, self.ending);
        (!true_end).then(wrong)
    }

    /// What is wrong with what it has written.
    pub fn check_output(&self, output: &[u8]) -> Option<String> {
        let whole = match self.ending {
            Ending::Exits(_) | Ending::Dies => output == self.output,
            Ending::Cancelled | Ending::TimesOut => self.output.starts_with(output),
        };
        (!whole).then(|| self.wrong_output(output))
    }

    /// The same where nobody captured it to the end.
    pub fn check_part(&self, output: &[u8]) -> Option<String> {
        (!self.output.starts_with(output)).then(|| self.wrong_output(output))
    }

    fn wrong_output(&self, output: &[u8]) -> String {
        let same = output.iter().zip(&self.output).take_while(|(a, b)| a == b);
        format!(
            "{}: {} bytes of {}, {} of them right",
            self.name,
            output.len(),
            self.output.len(),
            same.count()
        )
    }
}

/// The same in the foreground, for as long as it may run, and held by nobody.
fn in_foreground(request: SpawnRequest, timeout: Option<Duration>) -> SpawnRequest {
    request
        .in_foreground()
        .with_foreground_timeout(timeout.unwrap_or(secs(3600)))
        .with_on_foreground_timeout(ForegroundTimeoutAction::Cancel)
        .with_on_disconnect(DisconnectAction::Keep)
}

/// Whether a task never ran, and says so.
pub fn never_ran(task: &BackgroundTask) -> bool {
    let outcome = task
        .outcome
        .as_ref()
        .and_then(|outcome| outcome.result.as_ref());
    matches!(outcome, Some(Outcome::SpawnError(_)))
}

/// Whether nobody saw how a task ended, and it says so.
pub fn is_lost(task: &BackgroundTask) -> bool {
    let outcome = task
        .outcome
        .as_ref()
        .and_then(|outcome| outcome.result.as_ref());
    matches!(outcome, Some(Outcome::Unknown(_)))
}
