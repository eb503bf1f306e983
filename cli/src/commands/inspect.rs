//! `heeler inspect`: shows everything about one task.

use clap::Args;
use heeler_client::v1::InspectRequest;

use crate::{
    context::{ClientArgs, Context, Printed},
    exit::Exit,
    failure::Failure,
    out,
    render::card,
};

const EXAMPLES: &str = "\
Examples:
  heeler inspect shell-4k2mzq7xda
  heeler inspect --json shell-4k2mzq7xda | jq .processes";

/// Show everything about one task: state, times, outcome, policies, how it was stopped, its
/// processes and the end of its output
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Inspect {
    /// The task
    id: String,

    #[command(flatten)]
    client: ClientArgs,
}

impl Inspect {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = Context::open(&self.client).await?;
        let request = InspectRequest {
            task_id: self.id,
            output_tail_bytes: None,
        };
        let response = cx.client.inspect(request).await?;
        if cx.print_json(&response)? == Printed::No {
            for line in card::lines(&response, out::width()) {
                cx.out.line(&line)?;
            }
        }
        cx.out.flush()?;
        Ok(Exit::Success)
    }
}
