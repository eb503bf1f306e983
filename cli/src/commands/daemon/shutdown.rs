//! `heeler shutdown`: stops the daemon.

use std::time::Duration;

use clap::Args;
use heeler_client::{
    Error, time,
    v1::{ShutdownRequest, ShutdownResponse, ShutdownTasks},
};

use crate::{
    args::value::duration,
    context::{ClientArgs, Context, Printed},
    daemon::exit_wait::ExitWait,
    exit::Exit,
    failure::Failure,
    out,
};

const EXAMPLES: &str = "\
Examples:
  heeler shutdown
  heeler shutdown --stop-tasks --grace 2s --reason 'going home'

Without --stop-tasks the tasks keep running, and the next daemon takes them over: this is also the \
way to upgrade heeler. The command returns when the daemon's process has exited. The exit code is \
0, also if no daemon was running, and 1 if a task could not be stopped. It never starts a daemon.";

/// Stop the daemon; its tasks keep running unless --stop-tasks is given
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Shutdown {
    /// Stop every live task first, and wait until every process is proven gone
    #[arg(long)]
    stop_tasks: bool,

    /// Time between the stop signal and the kill [default: each task's own]
    #[arg(long, value_name = "T", value_parser = duration::parse, allow_hyphen_values = true, requires = "stop_tasks")]
    grace: Option<Duration>,

    /// The reason, kept with each task that is stopped
    #[arg(long, requires = "stop_tasks")]
    reason: Option<String>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

impl Shutdown {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = match Context::find(&self.client).await {
            Err(Failure::Client(error @ Error::NotRunning { .. })) => {
                out::note(&format!("nothing to shut down: {error}"));
                return Ok(Exit::Success);
            }
            found => found?,
        };
        let exit = ExitWait::for_daemon_at(cx.client.address())?;
        let response = cx.client.shutdown(self.request()).await?;
        exit.wait().await?;
        if cx.print_json(&response)? == Printed::No {
            cx.out.line(&self.result(&response))?;
        }
        cx.out.flush()?;
        match self.stop_tasks && response.live_tasks > 0 {
            true => Ok(Exit::Failed),
            false => Ok(Exit::Success),
        }
    }

    fn request(&self) -> ShutdownRequest {
        let tasks = match self.stop_tasks {
            true => ShutdownTasks::Stop,
            false => ShutdownTasks::LeaveRunning,
        };
        ShutdownRequest {
            tasks: tasks.into(),
            grace: self.grace.map(time::to_proto),
            reason: self.reason.clone().unwrap_or_default(),
            actor: String::new(),
        }
    }

    fn result(&self, response: &ShutdownResponse) -> String {
        let ShutdownResponse {
            stopped_tasks,
            live_tasks,
            revision: _,
        } = response;
        match (self.stop_tasks, live_tasks) {
            (false, live) => format!("the daemon has exited; tasks still running: {live}"),
            (true, 0) => format!("the daemon has exited; tasks stopped: {stopped_tasks}"),
            (true, live) => {
                format!(
                    "the daemon has exited; tasks stopped: {stopped_tasks}, not stopped: {live}"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grace_and_a_reason_are_accepted_with_stop_tasks_only() {
        let parse = |args: &[&str]| crate::args::parse::<Shutdown>(args);
        assert!(parse(&[]).is_ok());
        assert!(parse(&["--stop-tasks", "--grace", "0s", "--reason", "r"]).is_ok());
        assert!(parse(&["--grace", "1s"]).is_err());
        assert!(parse(&["--reason", "r"]).is_err());
    }
}
