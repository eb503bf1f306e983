//! `heeler_detach`: moves foreground tasks to the background.

use heeler_client::{DetachOptions, Filter, v1::DetachResult};
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, Effect, MOST_ROWS, Tool};
use crate::{
    connection::Call,
    problem::Problem,
    view::{TaskView, word},
};

pub(crate) struct Detach;

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct DetachArgs {
    /// The id of the task. Default: every foreground task of this session.
    #[serde(default)]
    id: Option<String>,
    /// The reason, which is kept with the task.
    #[serde(default)]
    reason: Option<String>,
}

/// The tasks that were detached.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct Detached {
    /// The ids of the tasks below.
    ids: Vec<String>,
    /// At most 50, those that were detached first.
    tasks: Vec<DetachedTask>,
    /// The number of tasks, those included that are not in this answer.
    count: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", inline)]
struct DetachedTask {
    id: String,
    /// detached, already_background or already_finished.
    effect: String,
    task: TaskView,
}

impl Tool for Detach {
    const NAME: &'static str = "heeler_detach";
    const TITLE: &'static str = "Move to the background";
    const DESCRIPTION: &'static str = "Moves a task that a heeler_run is waiting for to the background: the same \
process goes on, nothing is lost, and the waiting call returns at once with still_running. Use it when a run takes \
longer than expected and you have other work. Not needed for tasks of heeler_spawn, which are in the background \
already.";
    const EFFECT: Effect = Effect::Settles;
    type Input = DetachArgs;
    type Output = Detached;

    async fn call(input: DetachArgs, call: &Call<'_>) -> Result<Detached, Problem> {
        let filter = match &input.id {
            Some(word) => Filter::all().task(call.task(word).await?.id),
            None => Filter::all().session(call.session()),
        };
        let options = DetachOptions::new().actor(call.actor());
        let options = options.reason(input.reason.unwrap_or_default());
        let results = call.client.detach(filter, options).await?;
        Ok(Detached::of(&results))
    }
}

impl Detached {
    fn of(results: &[DetachResult]) -> Self {
        let mut tasks: Vec<_> = results.iter().map(DetachedTask::of).collect();
        let count = tasks.len();
        tasks.sort_by_key(|task| task.effect != "detached");
        tasks.truncate(MOST_ROWS);
        Self {
            ids: tasks.iter().map(|task| task.id.clone()).collect(),
            tasks,
            count,
        }
    }
}

impl DetachedTask {
    fn of(result: &DetachResult) -> Self {
        let task = TaskView::of(&result.task.clone().unwrap_or_default());
        Self {
            id: task.id.clone(),
            effect: word(result.outcome().as_str_name(), "DETACH_OUTCOME_"),
            task,
        }
    }
}

impl Answer for Detached {
    fn text(&self) -> String {
        if self.tasks.is_empty() {
            return "no task of this session is in the foreground".to_owned();
        }
        let line = |one: &DetachedTask| format!("{} — {}", one.task, one.effect.replace('_', " "));
        let mut lines: Vec<_> = self.tasks.iter().map(line).collect();
        if let Some(more) = self.count.checked_sub(lines.len()).filter(|more| *more > 0) {
            lines.push(format!("and {more} more"));
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use heeler_client::v1::{BackgroundTask, DetachOutcome};

    use super::*;

    /// M3
    #[test]
    fn the_answer_for_many_tasks_has_the_detached_ones_first_and_a_count() {
        let result = |number: usize| {
            let outcome = match number {
                400 => DetachOutcome::Detached,
                _ => DetachOutcome::AlreadyBackground,
            };
            let task = BackgroundTask {
                id: format!("shell-{number}"),
                ..BackgroundTask::default()
            };
            DetachResult {
                task: Some(task),
                outcome: outcome.into(),
            }
        };
        let results: Vec<_> = (0..=400).map(result).collect();
        let text = Detached::of(&results).text();
        assert_eq!(text.lines().count(), MOST_ROWS + 1, "{text}");
        assert!(text.starts_with("shell-400 "), "{text}");
        assert!(text.ends_with("\nand 351 more"), "{text}");
    }
}
