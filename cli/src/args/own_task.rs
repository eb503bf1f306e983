//! `--task ID` of the commands that a process inside a task runs.

use clap::Args;
use heeler_client::Client;

use super::selection;
use crate::{completion, failure::Failure, task_ref};

const VARIABLE: &str = "HEELER_TASK_ID";

#[derive(Debug, Args)]
pub(crate) struct OwnTask {
    /// The task [env: HEELER_TASK_ID, which every process inside a task has]
    #[arg(long = "task", value_name = "ID", add = completion::tasks(), value_parser = selection::not_empty())]
    task: Option<String>,
}

impl OwnTask {
    /// The id of the task that was named, else of the one that this process runs in.
    pub(crate) async fn id(&self, client: &Client) -> Result<String, Failure> {
        if let Some(word) = &self.task {
            return task_ref::resolve_one(client, word).await;
        }
        match std::env::var(VARIABLE) {
            Ok(id) if !id.is_empty() => Ok(id),
            Ok(_) | Err(_) => Err(Failure::Usage(format!(
                "this process is not inside a task ({VARIABLE} is not set); name one with --task"
            ))),
        }
    }
}
