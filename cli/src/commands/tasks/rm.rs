//! `heeler rm`: deletes finished tasks and their output.

use clap::{ArgGroup, Args};
use heeler_client::{
    CancelOptions, Filter,
    v1::{RemoveRequest, RemoveResponse},
};

use crate::{
    args::selection,
    completion,
    context::{ClientArgs, Context, Printed},
    exit::Exit,
    failure::Failure,
    render::{proof, status, text},
    task_ref,
};

/// The most tasks that one call accepts.
const MOST: usize = 1000;

const EXAMPLES: &str = "\
Examples:
  heeler rm shell-4k2mzq7xda shell-7rw3hm2pqe
  heeler rm --finished --session s1
  heeler rm -f dev

A live task is refused unless -f is given. Of several ids, at most 1000, all are deleted or none. The ids of the deleted tasks are printed.";

/// Delete finished tasks and their output
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("selection").required(true).args(["ids", "finished"]))]
pub(crate) struct Rm {
    /// The tasks: ids, unique prefixes of ids, or names of live tasks
    #[arg(value_name = "ID", add = completion::tasks(), value_parser = selection::not_empty())]
    ids: Vec<String>,

    /// Every finished task
    #[arg(long)]
    finished: bool,

    /// With --finished: only tasks of this session
    #[arg(long, conflicts_with = "ids", value_parser = selection::not_empty(),
          add = completion::sessions())]
    session: Option<String>,

    /// Stop live tasks first, as `heeler cancel` does, and delete them when they are proven gone
    #[arg(short, long, conflicts_with = "finished")]
    force: bool,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

impl Rm {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = Context::open(&self.client).await?;
        let ids = task_ref::resolve(&cx.client, &self.ids).await?;
        if ids.len() > MOST {
            let problem = format!("more than {MOST} tasks; use several calls, or --finished");
            return Err(Failure::Usage(problem));
        }
        if self.force {
            stop(&cx, &ids).await?;
        }
        let filter = match self.finished {
            true => selection::filter(self.session.as_deref(), &[]),
            false => Filter::all().tasks(ids),
        };
        let request = RemoveRequest {
            filter: Some(filter.into()),
        };
        let removed: RemoveResponse = cx.client.remove(request).await?;
        if cx.print_json(&removed)? == Printed::No {
            for id in &removed.removed_task_ids {
                cx.out.line(&text::visible(id))?;
            }
        }
        cx.out.flush()?;
        Ok(Exit::Success)
    }
}

/// Stops the tasks that are live. Fails if a process of them is left.
async fn stop(cx: &Context, ids: &[String]) -> Result<(), Failure> {
    let options = CancelOptions::graceful().actor("heeler rm");
    let request = options.of(Filter::all().tasks(ids));
    for result in cx.client.cancel_response(request).await?.results {
        let task = result.task.as_ref();
        if let Some(task) = task.filter(|task| !status::is_finished(task)) {
            let found = proof::of(task).map(proof::clause).unwrap_or_default();
            let text = format!("{} is not deleted: {found}", task.id);
            return Err(Failure::Other(text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_accepted_with_finished_only() {
        let parse = |args: &[&str]| crate::args::parse::<Rm>(args);
        assert!(parse(&["a", "b"]).is_ok());
        assert!(parse(&["--finished", "--session", "s"]).is_ok());
        assert!(parse(&["--session", "s"]).is_err());
        // An unset variable in a script.
        assert!(parse(&["--finished", "--session", ""]).is_err());
        assert!(parse(&["a", "--finished"]).is_err());
        assert!(parse(&["a", "--session", "s"]).is_err());
        assert!(parse(&["-f", "a"]).is_ok());
        assert!(parse(&["-f", "--finished"]).is_err());
        assert!(parse(&[]).is_err());
    }
}
