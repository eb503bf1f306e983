//! A job of a storm: a task whose output and end are known in advance, and whose command must run once.

use heeler_proto::v1::{
    BackgroundTask, DisconnectAction, ForegroundTimeoutAction, Placement, SpawnRequest, TaskState,
    outcome::Result::{self as Outcome, ExitCode, Signal},
};
use prost_types::Duration;

use super::chance::Chance;
use crate::{SpawnRequestExt as _, argv, millis, pattern, secs};

/// The first jobs of a storm, of which a third are in the foreground. The server keeps the latest 1,000
/// finished foreground tasks, for ten minutes, and the audit needs them all.
const FOREGROUND_JOBS: u64 = 2_400;

/// A task to spawn.
#[derive(Debug, Clone)]
pub struct Job {
    /// The name, which is also the request id.
    pub name: String,
    pub request: SpawnRequest,
    pub placement: Placement,
    pub ending: Ending,
    /// The complete output.
    pub output: Vec<u8>,
    /// The size of the part that the leader writes itself, at the beginning.
    pub leader_output: usize,
}

/// The end of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Exits with this code.
    Exits(i32),
    /// Kills itself.
    Dies,
    /// Is cancelled; its output is a prefix of the complete one.
    Cancelled,
    /// Reaches its timeout; its output is a prefix of the complete one.
    TimesOut,
}

/// The part of a job's output that a shim was there to capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Captured {
    Whole,
    Part,
}

/// The parts of every job.
#[derive(Debug, Clone)]
pub struct JobKit {
    /// The path of the fixture.
    pub fixture: String,
    /// The file to which every leader appends its name.
    pub ran: String,
}

impl Job {
    /// Draws a job.
    pub fn any(kit: &JobKit, number: u64, chance: &mut Chance) -> Self {
        let name = format!("job-{number}");
        let code = *chance.pick(&[0, 0, 1, 7, 42, 255]);
        let pause = chance.within(1..250);
        let (mut steps, mut ending) = (format!("print {name}"), Ending::Exits(code));
        let mut output = format!("{name}\n").into_bytes();
        let mut hidden = Vec::new();
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
            // A hidden process outlives the leader, and its output counts.
            4 => {
                steps += &format!(" double-fork [ setsid sleep {pause} print hidden ]");
                hidden.extend(b"hidden\n");
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
        // Drawn for every job, so that the next one does not depend on the number of this one.
        let foreground = chance.once_in(3) && number < FOREGROUND_JOBS;
        let script = format!("pids {} pid {name} {steps}", kit.ran);
        let words = [&*kit.fixture].into_iter().chain(script.split(' '));
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
            leader_output: output.len(),
            output: [output, hidden].concat(),
        }
    }

    /// The fault in the end of its task, if any.
    pub fn check_end(&self, task: &BackgroundTask) -> Option<String> {
        let outcome = task
            .outcome
            .as_ref()
            .and_then(|outcome| outcome.result.as_ref());
        let expected_end = match (self.ending, task.state(), outcome) {
            // Its output could not be written.
            (Ending::Exits(0), TaskState::Failed, Some(ExitCode(0))) => {
                !task.capture_error.is_empty()
            }
            (Ending::Exits(0), TaskState::Completed, Some(ExitCode(0))) => true,
            (Ending::Exits(expected), TaskState::Failed, Some(ExitCode(code))) => *code == expected,
            (Ending::Dies, TaskState::Failed, Some(Signal(signal))) => signal.number == 9,
            (Ending::Cancelled, TaskState::Cancelled, Some(Signal(_)))
            | (Ending::TimesOut, TaskState::TimedOut, Some(Signal(_))) => true,
            _ => false,
        };
        let wrong = || format!("{}: {:?} ended {task:?}", self.name, self.ending);
        (!expected_end).then(wrong)
    }

    /// The fault in its output, if any.
    pub fn check_output(&self, output: &[u8]) -> Option<String> {
        let whole = match self.ending {
            Ending::Exits(_) | Ending::Dies => output == self.output,
            Ending::Cancelled | Ending::TimesOut => self.output.starts_with(output),
        };
        (!whole).then(|| self.wrong_output(output))
    }

    /// The fault in output whose capture was cut short, if any.
    pub fn check_part(&self, output: &[u8]) -> Option<String> {
        (!self.output.starts_with(output)).then(|| self.wrong_output(output))
    }

    /// The fault in output that was captured at least until the leader's exit, if any.
    pub fn check_orphaned(&self, output: &[u8]) -> Option<String> {
        let has_leaders_part = match self.ending {
            Ending::Exits(_) | Ending::Dies => output.len() >= self.leader_output,
            Ending::Cancelled | Ending::TimesOut => true,
        };
        let wrong = self.check_part(output);
        wrong.or_else(|| (!has_leaders_part).then(|| self.wrong_output(output)))
    }

    /// The fault in output of which `lost` bytes were not kept, if any: the rest is there in its order. The
    /// lost bytes may include some of what was written besides.
    pub fn check_gaps(
        &self,
        output: &[u8],
        lost: u64,
        besides: u64,
        captured: Captured,
    ) -> Option<String> {
        let missing = self.output.len().saturating_sub(output.len()) as u64;
        let is_counted = match (self.ending, captured) {
            (Ending::Exits(_) | Ending::Dies, Captured::Whole) => missing == lost,
            (Ending::Cancelled | Ending::TimesOut, _) | (_, Captured::Part) => {
                lost <= missing + besides
            }
        };
        let wrong = || format!("{}, {lost} said to be lost", self.wrong_output(output));
        let out_of_order = self.check_order(output);
        out_of_order.or_else(|| (!is_counted).then(wrong))
    }

    /// The fault in output that may have gaps, if any.
    pub fn check_order(&self, output: &[u8]) -> Option<String> {
        let mut expected = self.output.iter();
        let mut output_bytes = output.iter();
        let is_in_order = output_bytes.all(|byte| expected.any(|other| other == byte));
        (!is_in_order).then(|| self.wrong_output(output))
    }

    fn wrong_output(&self, output: &[u8]) -> String {
        let same = output.iter().zip(&self.output).take_while(|(a, b)| a == b);
        format!(
            "{}: {} bytes of {}, the first {} of them right",
            self.name,
            output.len(),
            self.output.len(),
            same.count()
        )
    }
}

/// Moves the job to the foreground, without an attached client, for as long as it may run.
fn in_foreground(request: SpawnRequest, timeout: Option<Duration>) -> SpawnRequest {
    request
        .in_foreground()
        .with_foreground_timeout(timeout.unwrap_or(secs(3600)))
        .with_on_foreground_timeout(ForegroundTimeoutAction::Cancel)
        .with_on_disconnect(DisconnectAction::Keep)
}

/// True if the task says that it never ran.
pub fn never_ran(task: &BackgroundTask) -> bool {
    let outcome = task
        .outcome
        .as_ref()
        .and_then(|outcome| outcome.result.as_ref());
    matches!(outcome, Some(Outcome::SpawnError(_)))
}

/// True if the task says that its end was not observed.
pub fn is_lost(task: &BackgroundTask) -> bool {
    let outcome = task
        .outcome
        .as_ref()
        .and_then(|outcome| outcome.result.as_ref());
    matches!(outcome, Some(Outcome::Unknown(_)))
}
