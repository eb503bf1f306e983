//! `heeler check`: tells a script inside a task whether the task is being stopped.

use clap::Args;
use heeler_client::{
    time,
    v1::{ReportProgressRequest, WorkCancel, WorkCancelMode},
};

use crate::{
    args::own_task::OwnTask,
    context::{ClientArgs, Context, Printed},
    exit::Exit,
    failure::Failure,
    render::{causes, text, units},
};

const EXAMPLES: &str = "\
Examples:
  while heeler check; do next_step; done
  heeler check || exit

The exit code is 0 while the task may go on, and 10 once it has been asked to stop; then a line says how much \
time is left, and why. Any other code is an error.

For a minute after each check a cancel of the task begins softly: its --soft-grace passes before the stop signal, \
so that the present step can be finished.";

/// Exit with 10 if the task of this script has been asked to stop, else with 0
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Check {
    #[command(flatten)]
    task: OwnTask,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

impl Check {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = Context::find(&self.client).await?;
        let request = ReportProgressRequest {
            task_id: self.task.id(&cx.client).await?,
            listens: true,
            ..ReportProgressRequest::default()
        };
        let response = cx.client.report_progress(request).await?;
        if cx.print_json(&response)? == Printed::No
            && let Some(cancel) = &response.cancel
        {
            cx.out.line(&text::visible(&line(cancel)))?;
        }
        cx.out.flush()?;
        Ok(match response.cancel {
            Some(_) => Exit::Stop,
            None => Exit::Success,
        })
    }
}

/// Such as `stop within 8s: cancel by host (uid 7): superseded`.
fn line(cancel: &WorkCancel) -> String {
    let left = cancel.remaining.map(time::from_proto).unwrap_or_default();
    let urgency = match cancel.mode() {
        WorkCancelMode::Soft => format!("stop within {}", units::duration(left)),
        WorkCancelMode::Final | WorkCancelMode::Unspecified => "stop now".to_owned(),
    };
    format!("{urgency}: {}", causes::request(cancel))
}

#[cfg(test)]
mod tests {
    use heeler_client::v1::EndReason;

    use super::*;

    /// P6
    #[test]
    fn the_line_says_how_much_time_is_left_and_why() {
        let mut cancel = WorkCancel {
            mode: WorkCancelMode::Soft.into(),
            cause: EndReason::Cancelled.into(),
            reason: "superseded".to_owned(),
            remaining: Some(prost_types::Duration {
                seconds: 8,
                nanos: 0,
            }),
            ..WorkCancel::default()
        };
        assert_eq!(line(&cancel), "stop within 8s: cancel: superseded");
        cancel.mode = WorkCancelMode::Final.into();
        assert_eq!(line(&cancel), "stop now: cancel: superseded");
    }
}
