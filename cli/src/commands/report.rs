//! `heeler report`: reports the progress of a task from inside it.

use std::io::Read as _;

use clap::{ArgGroup, Args};
use heeler_client::{Progress, v1::ReportProgressRequest};

use crate::{
    args::{
        own_task::OwnTask,
        value::key_value::{self, KeyValue},
    },
    context::{ClientArgs, Context},
    exit::Exit,
    failure::Failure,
};

/// The most that is read from stdin. The daemon keeps less.
const MOST_READ: u64 = 64 * 1024;

const EXAMPLES: &str = "\
Examples:
  heeler report --intent 'runs the tests' --percent 40
  heeler report --note 'found two failures'
  heeler report --tool-call bash 'ls -la'
  make 2>&1 | heeler report --tool-result make -
  heeler report --count tool_calls=7 --count tokens=1200

Without an option it is a heartbeat: the work goes on. `heeler inspect` shows the latest blocks, `heeler ps` the \
intent and the percentage.";

/// Report the progress of the task of this script
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    group = ArgGroup::new("block").args(["note", "text", "thought", "tool_call", "tool_result"])
)]
pub(crate) struct Report {
    /// The present activity, in one line
    #[arg(long, value_name = "TEXT")]
    intent: Option<String>,

    /// The part that is done, from 0 to 100
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100))]
    percent: Option<u32>,

    /// A counter; may be repeated, and replaces all earlier ones
    #[arg(long = "count", value_name = "K=N", value_parser = count)]
    counts: Vec<(String, u64)>,

    /// A block of any kind
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    note: Option<String>,

    /// A block of text that the worker has written
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    text: Option<String>,

    /// A block of the worker's reasoning
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    thought: Option<String>,

    /// A block with the call of this tool
    #[arg(long, value_name = "NAME")]
    tool_call: Option<String>,

    /// A block with the result of this tool
    #[arg(long, value_name = "NAME")]
    tool_result: Option<String>,

    /// The arguments of the tool, or its result; - reads it from stdin
    #[arg(value_name = "TEXT", allow_hyphen_values = true, conflicts_with_all = ["note", "text", "thought"])]
    body: Option<String>,

    #[command(flatten)]
    task: OwnTask,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

impl Report {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = Context::find(&self.client).await?;
        let request = ReportProgressRequest {
            task_id: self.task.id(&cx.client).await?,
            update: Some(self.progress()?.into()),
            ..ReportProgressRequest::default()
        };
        let response = cx.client.report_progress(request).await?;
        cx.print_json(&response)?;
        cx.out.flush()?;
        Ok(Exit::Success)
    }

    fn progress(&self) -> Result<Progress, Failure> {
        let mut progress = Progress::new();
        if let Some(intent) = &self.intent {
            progress = progress.intent(intent);
        }
        if let Some(percent) = self.percent {
            progress = progress.percent(percent);
        }
        for (name, count) in &self.counts {
            progress = progress.count(name, *count);
        }
        if let Some(text) = &self.note {
            progress = progress.note(text);
        }
        if let Some(text) = &self.text {
            progress = progress.text(text);
        }
        if let Some(text) = &self.thought {
            progress = progress.thought(text);
        }
        if let Some(name) = &self.tool_call {
            progress = progress.tool_call(name, self.body()?);
        } else if let Some(name) = &self.tool_result {
            progress = progress.tool_result(name, self.body()?);
        } else if self.body.is_some() {
            let text = "a TEXT goes with --tool-call or --tool-result; use --note for any other";
            return Err(Failure::Usage(text.to_owned()));
        }
        Ok(progress)
    }

    fn body(&self) -> Result<String, Failure> {
        match self.body.as_deref() {
            Some("-") => {
                let mut bytes = Vec::new();
                let mut stdin = std::io::stdin().lock().take(MOST_READ);
                stdin.read_to_end(&mut bytes).map_err(Failure::setup)?;
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
            body => Ok(body.unwrap_or_default().to_owned()),
        }
    }
}

fn count(text: &str) -> Result<(String, u64), String> {
    let KeyValue { key, value } = key_value::parse(text)?;
    let count = value.parse().map_err(|_| "expected NAME=NUMBER".to_owned());
    Ok((key, count?))
}

#[cfg(test)]
mod tests {
    use heeler_client::v1::{BlockKind, ProgressUpdate};

    use super::*;
    use crate::args::parse;

    fn update(args: &[&str]) -> ProgressUpdate {
        parse::<Report>(args).unwrap().progress().unwrap().into()
    }

    /// P6
    #[test]
    fn flags_become_one_change() {
        let update = update(&[
            "--intent",
            "reads",
            "--percent",
            "40",
            "--count",
            "tokens=7",
            "--tool-call",
            "bash",
            "ls",
        ]);
        assert_eq!(
            (update.intent.as_deref(), update.percent),
            (Some("reads"), Some(40))
        );
        assert_eq!(update.counts["tokens"], 7);
        let block = &update.blocks[0];
        assert_eq!(
            (block.kind(), &*block.name, &*block.text),
            (BlockKind::ToolCall, "bash", "ls")
        );
    }

    #[test]
    fn no_flag_is_a_heartbeat_and_bad_ones_are_refused() {
        assert_eq!(update(&[]), ProgressUpdate::default());
        assert!(parse::<Report>(&["--percent", "101"]).is_err());
        assert!(parse::<Report>(&["--count", "tokens=many"]).is_err());
        assert!(parse::<Report>(&["--note", "a", "--thought", "b"]).is_err());
        assert!(parse::<Report>(&["text"]).unwrap().progress().is_err());
    }
}
