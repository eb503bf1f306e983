//! `heeler wait`: until tasks are over, or released. Ending it, by whatever means, ends no task.

use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};
use heeler_client::{
    self as sdk,
    v1::{BackgroundTask, TaskState, WaitResponse},
};

use crate::{
    context::{ClientArgs, Context, Printed},
    duration,
    exit::{Exit, Failure},
    out, text, values, words,
};

const EXAMPLES: &str = "\
Examples:
  heeler wait shell-4k2mzq7xda && echo ok
  heeler wait --any --timeout 30s shell-4k2mzq7xda shell-7rw3hm2pqe
  heeler wait --session s1
  heeler wait --until background shell-4k2mzq7xda

For one task it exits with the task's own exit code, 128+n if signal n ended it, and 1 if it never ran
or nobody saw its end; with 0 if it was released and goes on in the background. One that was stopped is
never 0. For several, or a session, it exits with 0 if all of those that ended are COMPLETED, else with
1. Of a session those count that are live now or start meanwhile, not those that are over already. When
the timeout comes first it exits with 124. Ctrl-C ends the wait only.";

/// Wait until tasks are over, or released
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("whom").required(true).args(["ids", "session"]))]
pub(crate) struct Wait {
    /// The tasks
    #[arg(value_name = "ID")]
    ids: Vec<String>,

    /// All live tasks of this session, those included that start meanwhile
    #[arg(long, value_parser = values::not_empty())]
    session: Option<String>,

    /// Until one of them is over, rather than all
    #[arg(long, conflicts_with = "session")]
    any: bool,

    /// What to wait for
    #[arg(long, value_enum, default_value_t = Until::Finished)]
    until: Until,

    /// How long to wait at most; 0 only looks
    #[arg(long, value_name = "T", value_parser = duration::parse, allow_hyphen_values = true)]
    timeout: Option<Duration>,

    #[command(flatten)]
    client: ClientArgs,
}

/// What can be waited for.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Until {
    /// The task is over
    Finished,
    /// It holds nobody in the foreground: it is in the background, or over
    Background,
}

impl Until {
    fn word(self) -> &'static str {
        match self {
            Self::Finished => "over",
            Self::Background => "background",
        }
    }
}

impl Wait {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = Context::open(&self.client).await?;
        let response = cx.client.wait(self.request()).await?;
        if cx.print_json(&response)? == Printed::No {
            for task in &response.met {
                let line = format!("{}  {}", task.id, words::state_and_outcome(task));
                cx.out.line(&text::visible(&line))?;
            }
            if !response.satisfied {
                let pending: Vec<_> = response.pending.iter().map(|it| it.id.as_str()).collect();
                out::note(&format!(
                    "the timeout came first; not {}: {}",
                    self.until.word(),
                    pending.join(" ")
                ));
            }
        }
        cx.out.flush()?;
        Ok(self.exit(&response))
    }

    fn request(&self) -> sdk::Wait {
        let ids = values::distinct(&self.ids);
        let wait = match (&self.session, self.any) {
            (Some(session), _) => sdk::Wait::session(session),
            (None, true) => sdk::Wait::any(ids),
            (None, false) => sdk::Wait::all(ids),
        };
        let wait = match self.until {
            Until::Finished => wait,
            Until::Background => wait.out_of_foreground(),
        };
        self.timeout.into_iter().fold(wait, sdk::Wait::timeout)
    }

    fn exit(&self, response: &WaitResponse) -> Exit {
        if !response.satisfied {
            return Exit::TimedOut;
        }
        match (
            values::distinct(&self.ids).as_slice(),
            response.met.as_slice(),
        ) {
            ([_], [task]) if goes_on(task) => Exit::Done,
            ([_], [task]) => words::exit_code(task).map_or(Exit::Failed, Exit::AsTask),
            (_, met) if met.iter().all(|task| goes_on(task) || is_completed(task)) => Exit::Done,
            (_, _) => Exit::Failed,
        }
    }
}

/// Whether it was released and how its leader ends is still open.
fn goes_on(task: &BackgroundTask) -> bool {
    !words::is_over(task) && task.outcome.is_none()
}

fn is_completed(task: &BackgroundTask) -> bool {
    task.state() == TaskState::Completed
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use heeler_client::v1::{Outcome, SignalOutcome, UnknownOutcome, outcome::Result as Ended};

    use super::*;

    fn parse(args: &[&str]) -> Result<Wait, clap::Error> {
        let cli = crate::Cli::try_parse_from([&["heeler", "wait"], args].concat())?;
        let crate::commands::Command::Wait(crate::deferred::Deferred(args)) = cli.command else {
            panic!("not wait")
        };
        Ok(args)
    }

    fn ended(state: TaskState, result: Ended) -> BackgroundTask {
        let outcome = Some(Outcome {
            result: Some(result),
        });
        BackgroundTask {
            state: state.into(),
            outcome,
            ..BackgroundTask::default()
        }
    }

    fn exit(args: &[&str], met: Vec<BackgroundTask>) -> u8 {
        let response = WaitResponse {
            satisfied: true,
            met,
            ..WaitResponse::default()
        };
        parse(args).unwrap().exit(&response).code()
    }

    #[test]
    fn one_task_gives_its_own_exit_code() {
        let signal = Ended::Signal(SignalOutcome {
            number: 15,
            ..SignalOutcome::default()
        });
        assert_eq!(
            exit(&["a"], vec![ended(TaskState::Failed, Ended::ExitCode(7))]),
            7
        );
        assert_eq!(
            exit(
                &["a", "a"],
                vec![ended(TaskState::Failed, Ended::ExitCode(7))]
            ),
            7
        );
        assert_eq!(exit(&["a"], vec![ended(TaskState::Cancelled, signal)]), 143);
        let lost = ended(TaskState::Lost, Ended::Unknown(UnknownOutcome::default()));
        assert_eq!(exit(&["a"], vec![lost]), 1);
    }

    #[test]
    fn several_give_success_only_if_all_completed() {
        let good = ended(TaskState::Completed, Ended::ExitCode(0));
        let bad = ended(TaskState::Failed, Ended::ExitCode(7));
        assert_eq!(exit(&["a", "b"], vec![good.clone(), good.clone()]), 0);
        assert_eq!(exit(&["a", "b"], vec![good.clone(), bad.clone()]), 1);
        assert_eq!(exit(&["a", "b", "--any"], vec![good]), 0);
        assert_eq!(exit(&["--session", "s"], vec![bad]), 1);
        assert_eq!(exit(&["--session", "s"], vec![]), 0);
    }

    #[test]
    fn a_task_that_goes_on_in_the_background_is_no_failure() {
        let running = BackgroundTask {
            state: TaskState::Running.into(),
            ..BackgroundTask::default()
        };
        let bad = ended(TaskState::Failed, Ended::ExitCode(7));
        let leader_exited = ended(TaskState::Running, Ended::ExitCode(7));
        let args = ["a", "--until", "background"];
        assert_eq!(exit(&args, vec![running.clone()]), 0);
        assert_eq!(exit(&args, vec![bad.clone()]), 7);
        assert_eq!(exit(&args, vec![leader_exited]), 7);
        let args = ["a", "b", "--until", "background"];
        assert_eq!(exit(&args, vec![running.clone(), running.clone()]), 0);
        assert_eq!(exit(&args, vec![running, bad]), 1);
    }

    #[test]
    fn a_timeout_has_a_code_of_its_own() {
        let response = WaitResponse::default();
        assert_eq!(parse(&["a"]).unwrap().exit(&response).code(), 124);
    }

    #[test]
    fn ids_or_a_session_are_wanted() {
        assert!(parse(&[]).is_err());
        assert!(parse(&["a", "--session", "s"]).is_err());
        assert!(parse(&["--session", "s", "--any"]).is_err());
        assert!(parse(&["a", "--until", "finished"]).is_ok());
        assert!(parse(&["a", "--until", "background"]).is_ok());
        assert!(parse(&["a", "--until", "ready"]).is_err());
    }
}
