//! `heeler update`: changes the patterns of a live task.

use clap::{ArgGroup, Args};
use heeler_client::{
    Error,
    v1::{BackgroundTask, OutputPattern, UpdateTaskRequest},
};

use crate::{
    args::{
        selection, spawn_request,
        value::key_value::{self, KeyValue},
    },
    completion,
    context::{ClientArgs, Context, Printed},
    exit::Exit,
    failure::Failure,
    render::{spec, text},
    task_ref,
};

const EXAMPLES: &str = "\
Examples:
  heeler update dev --match error='(?i)error' --match ready='Listening on'
  heeler update dev --remove-match error

The output that is there is searched, too. `heeler events -f --type matched` prints the lines, \
`heeler inspect` their number. The patterns that the task has now are printed.";

/// Change the patterns that are looked for in the output of a live task
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("change").required(true).multiple(true).args(["set", "remove"]))]
pub(crate) struct Update {
    /// The task: an id, a unique prefix of one, or the name of a live task
    #[arg(value_name = "ID", add = completion::tasks(), value_parser = selection::not_empty())]
    id: String,

    /// A pattern to add, or to put in place of the one with its name; may be repeated
    #[arg(long = "match", value_name = "NAME=RE", value_parser = key_value::parse_pattern)]
    set: Vec<KeyValue>,

    /// The name of a pattern to remove; may be repeated
    #[arg(long = "remove-match", value_name = "NAME", value_parser = selection::not_empty())]
    remove: Vec<String>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

impl Update {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = Context::open(&self.client).await?;
        let request = UpdateTaskRequest {
            task_id: task_ref::resolve_one(&cx.client, &self.id).await?,
            set_patterns: self.set.iter().map(spawn_request::pattern).collect(),
            remove_patterns: self.remove,
        };
        let response = cx.client.update_task(request).await?;
        if cx.print_json(&response)? == Printed::No {
            let task = response.task.ok_or(Error::Incomplete { field: "task" })?;
            for line in patterns(&task) {
                cx.out.line(&text::visible(&line))?;
            }
        }
        cx.out.flush()?;
        Ok(Exit::Success)
    }
}

fn patterns(task: &BackgroundTask) -> Vec<String> {
    let patterns = spec::patterns(task).iter();
    let line = |pattern: &OutputPattern| format!("{}={}", pattern.name, pattern.regex);
    patterns.map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// O16
    #[test]
    fn a_change_is_required() {
        let parse = |args: &[&str]| crate::args::parse::<Update>(args);
        assert!(parse(&["a"]).is_err());
        assert!(parse(&["a", "--match", "x"]).is_err());
        assert!(parse(&["a", "--match", "x=y", "--remove-match", "z"]).is_ok());
    }
}
