//! `heeler shutdown`: ends the daemon.

use std::time::Duration;

use clap::Args;
use heeler_client::{
    Error, time,
    v1::{ShutdownRequest, ShutdownResponse, ShutdownTasks},
};

use crate::{
    context::{ClientArgs, Context, Printed},
    departure::Departure,
    duration,
    exit::{Exit, Failure},
    out,
};

const EXAMPLES: &str = "\
Examples:
  heeler shutdown
  heeler shutdown --stop-tasks --grace 2s --reason 'going home'

Without --stop-tasks the tasks run on, and the next daemon takes them back: that is also the way to a
new version of heeler. It returns when the daemon's process is gone, with 0; also where there was none.
It exits with 1 if a task that was to be stopped is still there. No daemon is started for it.";

/// End the daemon, and leave its tasks running
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Shutdown {
    /// Stop every live task first, and wait for the proof that nothing of it is left
    #[arg(long)]
    stop_tasks: bool,

    /// How long they may take to obey before they are killed [default: each task's own]
    #[arg(long, value_name = "T", value_parser = duration::parse, allow_hyphen_values = true, requires = "stop_tasks")]
    grace: Option<Duration>,

    /// Why; kept with each task that is stopped
    #[arg(long, requires = "stop_tasks")]
    reason: Option<String>,

    #[command(flatten)]
    client: ClientArgs,
}

impl Shutdown {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = match Context::find(&self.client).await {
            Err(Failure::Client(error @ Error::NotRunning { .. })) => {
                out::note(&format!("there is nothing to end: {error}"));
                return Ok(Exit::Done);
            }
            found => found?,
        };
        let departure = Departure::of(cx.client.address())?;
        let response = cx.client.shutdown(self.request()).await?;
        departure.wait().await?;
        if cx.print_json(&response)? == Printed::No {
            cx.out.line(&self.result(&response))?;
        }
        cx.out.flush()?;
        match self.stop_tasks && response.live_tasks > 0 {
            true => Ok(Exit::Failed),
            false => Ok(Exit::Done),
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
            (false, left) => format!("the daemon has ended; tasks that run on: {left}"),
            (true, 0) => format!("the daemon has ended; tasks stopped: {stopped_tasks}"),
            (true, left) => {
                format!("the daemon has ended; tasks stopped: {stopped_tasks}, still there: {left}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    #[test]
    fn a_grace_and_a_reason_go_with_stopping_only() {
        let parse =
            |args: &[&str]| crate::Cli::try_parse_from([&["heeler", "shutdown"], args].concat());
        assert!(parse(&[]).is_ok());
        assert!(parse(&["--stop-tasks", "--grace", "0s", "--reason", "r"]).is_ok());
        assert!(parse(&["--grace", "1s"]).is_err());
        assert!(parse(&["--reason", "r"]).is_err());
    }
}
