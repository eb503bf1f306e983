//! `heeler inspect`: shows everything about tasks.

use clap::{Args, builder::NonEmptyStringValueParser};
use heeler_client::v1::InspectRequest;

use crate::{
    completion,
    context::{ClientArgs, Context, Printed},
    exit::Exit,
    failure::Failure,
    out,
    render::card,
    task_ref,
};

const EXAMPLES: &str = "\
Examples:
  heeler inspect shell-4k2mzq7xda
  heeler inspect --json shell-4k2mzq7xda | jq .processes
  heeler inspect --json shell-4k2mzq7xda shell-7rw3hm2pqe | jq -r .task.state

With --json each task is an object of its own, one after the other.";

/// Show everything about tasks: state, times, outcome, policies, patterns, how each was stopped, its
/// progress, its processes and the end of its output, or the summary of a finished task
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Inspect {
    /// The tasks: ids, unique prefixes of ids, or names of live tasks
    #[arg(value_name = "ID", required = true, add = completion::tasks(),
          value_parser = NonEmptyStringValueParser::new())]
    ids: Vec<String>,

    /// Show the latest N blocks of progress, up to 64
    #[arg(long, value_name = "N")]
    blocks: Option<u32>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

impl Inspect {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = Context::open(&self.client).await?;
        let mut exit = Exit::Success;
        for (index, task_id) in task_ref::resolve(&cx.client, &self.ids)
            .await?
            .into_iter()
            .enumerate()
        {
            let request = InspectRequest {
                task_id,
                block_count: self.blocks,
                ..InspectRequest::default()
            };
            let response = match cx.client.inspect(request).await {
                Ok(response) => response,
                Err(error) => {
                    exit = exit.and(out::report(&error.into()));
                    continue;
                }
            };
            if cx.print_json(&response)? == Printed::No {
                if index > 0 {
                    cx.out.line("")?;
                }
                for line in card::lines(&response, out::width()) {
                    cx.out.line(&line)?;
                }
            }
        }
        cx.out.flush()?;
        Ok(exit)
    }
}
