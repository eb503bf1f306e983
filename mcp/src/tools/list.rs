//! `heeler_list`: the tasks of the session.

use std::collections::HashMap;

use heeler_client::{ListOptions, v1::TaskState};
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, Effect, Tool};
use crate::{connection::Call, problem::Problem, view::TaskView};

/// Tasks in an answer unless a call says otherwise.
const PAGE: u16 = 50;

pub(crate) struct List;

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct ListArgs {
    /// `live` (default), `finished` or `all`.
    #[serde(default)]
    state: Option<Which>,
    /// Only tasks with this name.
    #[serde(default)]
    name: Option<String>,
    /// Only live tasks that listen on this TCP port.
    #[serde(default)]
    #[schemars(range(min = 1))]
    port: Option<u16>,
    /// The most tasks to return. Default: 50.
    #[serde(default)]
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u16>,
    /// The next_cursor of the last answer, for the tasks after it.
    #[serde(default)]
    cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", inline)]
#[serde(rename_all = "snake_case")]
enum Which {
    Live,
    Finished,
    All,
}

/// A page of tasks.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct Listed {
    /// Live ones first, then the newest first.
    pub(crate) tasks: Vec<TaskView>,
    /// Present if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl Tool for List {
    const NAME: &'static str = "heeler_list";
    const TITLE: &'static str = "List tasks";
    const DESCRIPTION: &'static str = "Lists the tasks of this session with state, age, exit code and listening \
ports: live ones, or with state=all also finished ones. Use it to find ids, to see what still runs before you end \
your work, or to find the task on a port. Do not poll with it: use heeler_wait to learn that something ended, and \
heeler_inspect for one task.";
    const EFFECT: Effect = Effect::Reads;
    type Input = ListArgs;
    type Output = Listed;

    async fn call(input: ListArgs, call: &Call<'_>) -> Result<Listed, Problem> {
        let mut filter = call.reachable();
        let options = match input.state.unwrap_or(Which::Live) {
            Which::Live => ListOptions::live(),
            Which::All => ListOptions::all(),
            Which::Finished => {
                filter = FINISHED
                    .into_iter()
                    .fold(filter, heeler_client::Filter::state);
                ListOptions::all()
            }
        };
        if let Some(name) = input.name {
            filter = filter.name(name);
        }
        if let Some(port) = input.port {
            filter = filter.port(port);
        }
        let options = options.matching(filter).with_ports();
        let options = options.page_size(input.limit.unwrap_or(PAGE));
        let options = options.page_token(input.cursor.unwrap_or_default());
        let page = call.client.list_page(options).await?;
        let ports = page.ports.into_iter();
        let mut ports: HashMap<_, _> = ports.map(|task| (task.task_id, task.ports)).collect();
        let view = |task: &heeler_client::v1::BackgroundTask| {
            let own = ports.remove(&task.id).unwrap_or_default();
            TaskView::of(task).with_ports(own.iter().map(|port| port.port).collect())
        };
        Ok(Listed {
            tasks: page.tasks.iter().map(view).collect(),
            next_cursor: Some(page.next_page_token).filter(|token| !token.is_empty()),
        })
    }
}

const FINISHED: [TaskState; 5] = [
    TaskState::Completed,
    TaskState::Failed,
    TaskState::Cancelled,
    TaskState::TimedOut,
    TaskState::Lost,
];

impl Answer for Listed {
    fn text(&self) -> String {
        let mut lines: Vec<String> = self.tasks.iter().map(TaskView::to_string).collect();
        if lines.is_empty() {
            lines.push("no tasks".to_owned());
        }
        if let Some(cursor) = &self.next_cursor {
            lines.push(format!("There are more: call again with cursor {cursor}"));
        }
        lines.join("\n")
    }
}
