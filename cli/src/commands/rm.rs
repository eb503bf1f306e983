//! `heeler rm`: deletes finished tasks and their output.

use clap::{ArgGroup, Args};
use heeler_client::{
    Filter,
    v1::{RemoveRequest, RemoveResponse},
};

use crate::{
    args::selection,
    context::{ClientArgs, Context, Printed},
    exit::Exit,
    failure::Failure,
    render::text,
};

/// The most tasks that one call accepts.
const MOST: usize = 1000;

const EXAMPLES: &str = "\
Examples:
  heeler rm shell-4k2mzq7xda shell-7rw3hm2pqe
  heeler rm --finished --session s1

A live task is refused: cancel it first. Of several ids, at most 1000, all are deleted or none. The
ids of the deleted tasks are printed.";

/// Delete finished tasks and their output
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("selection").required(true).args(["ids", "finished"]))]
pub(crate) struct Rm {
    /// The tasks
    #[arg(value_name = "ID")]
    ids: Vec<String>,

    /// Every finished task
    #[arg(long)]
    finished: bool,

    /// With --finished: only tasks of this session
    #[arg(long, conflicts_with = "ids", value_parser = selection::not_empty())]
    session: Option<String>,

    #[command(flatten)]
    client: ClientArgs,
}

impl Rm {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = Context::open(&self.client).await?;
        let request = RemoveRequest {
            filter: Some(self.filter()?.into()),
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

    fn filter(&self) -> Result<Filter, Failure> {
        if self.finished {
            return Ok(selection::filter(self.session.as_deref(), &[]));
        }
        let ids = selection::distinct(&self.ids);
        if ids.len() > MOST {
            let problem = format!("more than {MOST} tasks; use several calls, or --finished");
            return Err(Failure::Usage(problem));
        }
        Ok(Filter::all().tasks(ids))
    }
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
        assert!(parse(&[]).is_err());
    }
}
