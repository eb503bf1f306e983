//! `heeler_cancel`: stops tasks, with the proof that nothing of them is left.

use std::time::Duration;

use heeler_client::{
    CancelOptions, Filter,
    v1::{BackgroundTask, CancelResult, proof::Result as Found},
};
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::timeout_at;

use super::{Answer, Effect, MOST_ROWS, Tool};
use crate::{
    connection::Call,
    problem::Problem,
    progress::with_progress,
    view::{TaskView, is_finished, proof, word},
};

pub(crate) struct Cancel;

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct CancelArgs {
    /// The ids, or names, of the tasks.
    #[serde(default)]
    ids: Vec<String>,
    /// Stop every task of this session, also those that other agents in this directory started.
    #[serde(default)]
    all: bool,
    /// The reason, which is kept with the task.
    #[serde(default)]
    reason: Option<String>,
    /// Kill at once instead of asking the task to stop first.
    #[serde(default)]
    force: bool,
    /// Seconds between the stop signal and the kill. Default: 5.
    #[serde(default)]
    #[schemars(range(min = 0, max = 30))]
    grace_seconds: Option<u32>,
}

/// The tasks that were stopped.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct Cancelled {
    /// The ids of the tasks below.
    ids: Vec<String>,
    /// At most 50, those that are not gone first.
    tasks: Vec<CancelledTask>,
    /// The number of tasks, those included that are not in this answer.
    count: usize,
    /// True if every task has ended and nothing of it is left.
    all_gone: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", inline)]
struct CancelledTask {
    id: String,
    /// requested, already_stopping or already_finished.
    effect: String,
    /// The proof that no process is left, or the processes that are.
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<String>,
    task: TaskView,
}

impl Tool for Cancel {
    const NAME: &'static str = "heeler_cancel";
    const TITLE: &'static str = "Stop tasks";
    const DESCRIPTION: &'static str = "Stops tasks with all their processes, also daemons and setsid children, and \
returns when they are proven gone, with the proof. Use it for what is not needed any more, hangs or is stale; before \
you end your work, for your tasks that should not outlive it. all=true stops every task of the session, also those of \
other agents and windows in this directory: prefer ids. Use it instead of kill or pkill, which miss \
processes. A finished task is no error. Use heeler_ensure with replace=true to restart a server.";
    const EFFECT: Effect = Effect::Stops;
    type Input = CancelArgs;
    type Output = Cancelled;

    async fn call(input: CancelArgs, call: &Call<'_>) -> Result<Cancelled, Problem> {
        let filter = match (input.ids.is_empty(), input.all) {
            (false, false) => {
                let tasks = call.tasks(&input.ids).await?;
                Filter::all().tasks(tasks.into_iter().map(|task| task.id))
            }
            (true, true) => Filter::all().session(call.session()),
            (true, false) => return Err(Problem::argument("ids", "is required, or all=true")),
            (false, true) => {
                return Err(Problem::argument("ids", "cannot be combined with all=true"));
            }
        };
        let options = input.options(call)?;
        let stop = call.client.cancel(filter.clone(), options.clone());
        let results = match timeout_at(
            call.deadline(),
            with_progress(call, "stops the tasks", stop),
        )
        .await
        {
            Ok(results) => results?,
            // The stop goes on; this only asks for the present state.
            Err(_) => call.client.cancel(filter, options.no_wait()).await?,
        };
        Ok(Cancelled::of(&results))
    }
}

impl CancelArgs {
    fn options(&self, call: &Call<'_>) -> Result<CancelOptions, Problem> {
        let options = match (self.force, self.grace_seconds) {
            (true, None) => CancelOptions::force(),
            (false, None) => CancelOptions::graceful(),
            (false, Some(grace)) => {
                CancelOptions::graceful().grace(Duration::from_secs(grace.into()))
            }
            (true, Some(_)) => {
                return Err(Problem::argument(
                    "grace_seconds",
                    "cannot be combined with force",
                ));
            }
        };
        let reason = self.reason.as_deref().unwrap_or_default();
        Ok(options.actor(call.actor()).reason(reason).cascade())
    }
}

impl Cancelled {
    fn of(results: &[CancelResult]) -> Self {
        let mut found: Vec<_> = results
            .iter()
            .map(|result| (result, result.task.clone().unwrap_or_default()))
            .collect();
        found.sort_by_key(|(_, task)| rank(task));
        let shown = found.iter().take(MOST_ROWS);
        let tasks: Vec<_> = shown
            .map(|(result, task)| CancelledTask::of(result, task))
            .collect();
        Self {
            ids: tasks.iter().map(|task| task.id.clone()).collect(),
            tasks,
            count: found.len(),
            all_gone: found.iter().all(|(_, task)| is_finished(task)),
        }
    }
}

impl CancelledTask {
    fn of(result: &CancelResult, task: &BackgroundTask) -> Self {
        Self {
            id: task.id.clone(),
            effect: word(result.outcome().as_str_name(), "CANCEL_OUTCOME_"),
            proof: proof(task),
            task: TaskView::of(task),
        }
    }
}

/// The place of a task in the answer: first those that are not gone, last those that had ended before.
fn rank(task: &BackgroundTask) -> u8 {
    let proof = task.stop.as_ref().and_then(|stop| stop.proof.as_ref());
    let found = proof.and_then(|proof| proof.result.as_ref());
    match (is_finished(task), found) {
        (false, _) => 0,
        (true, Some(Found::Survivors(_) | Found::Unproven(_))) => 1,
        (true, Some(Found::Proven(_))) => 2,
        (true, None) => 3,
    }
}

impl Answer for Cancelled {
    fn text(&self) -> String {
        if self.tasks.is_empty() {
            return "no task of this session is running: nothing to stop".to_owned();
        }
        let mut lines = Vec::new();
        for one in &self.tasks {
            let proof = one
                .proof
                .as_deref()
                .unwrap_or(match one.task.is_finished() {
                    true => "it had ended before",
                    false => "it is still stopping: call heeler_wait",
                });
            lines.push(format!("{} — {proof}", one.task));
        }
        if let Some(more) = self
            .count
            .checked_sub(self.tasks.len())
            .filter(|more| *more > 0)
        {
            let state = match self
                .tasks
                .last()
                .is_some_and(|last| last.task.is_finished())
            {
                true => "all ended",
                false => "see heeler_list for those that still stop",
            };
            lines.push(format!("and {more} more, {state}"));
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use heeler_client::v1::{Proof, ProofMethod, StopRecord, Survivors, TaskState};

    use super::*;

    fn result(number: usize, state: TaskState, found: Found) -> CancelResult {
        let mut task = BackgroundTask {
            id: format!("shell-{number}"),
            ..BackgroundTask::default()
        };
        task.set_state(state);
        let proof = Proof {
            result: Some(found),
            ..Proof::default()
        };
        task.stop = Some(StopRecord {
            proof: Some(proof),
            ..StopRecord::default()
        });
        CancelResult {
            task: Some(task),
            ..CancelResult::default()
        }
    }

    /// M3
    #[test]
    fn the_answer_for_many_tasks_has_the_survivors_first_and_a_count() {
        let gone = |number| {
            let method = Found::Proven(ProofMethod::CgroupEmpty.into());
            result(number, TaskState::Cancelled, method)
        };
        let mut results: Vec<_> = (0..400).map(gone).collect();
        let left = Found::Survivors(Survivors::default());
        results.push(result(400, TaskState::Stopping, left));
        let cancelled = Cancelled::of(&results);
        assert_eq!((cancelled.tasks.len(), cancelled.count), (MOST_ROWS, 401));
        assert_eq!(
            (cancelled.ids.len(), cancelled.all_gone),
            (MOST_ROWS, false)
        );
        let text = cancelled.text();
        assert!(text.starts_with("shell-400 stopping"), "{text}");
        assert!(text.lines().next().unwrap().contains("NOT gone"), "{text}");
        assert!(text.ends_with("\nand 351 more, all ended"), "{text}");
    }
}
