//! The result of a wait for a line of output.

use heeler_client::v1::{BackgroundTask, TaskMatch, WaitResponse};

use crate::{
    context::{Context, Printed},
    exit::Exit,
    failure::Failure,
    out,
    render::{status, text},
};

/// Prints the lines, and on stderr the tasks that have none. `needed` tasks should have one.
pub(super) fn print(
    cx: &mut Context,
    response: &WaitResponse,
    needed: usize,
) -> Result<Exit, Failure> {
    if cx.print_json(response)? == Printed::No {
        let is_alone = response.met.len() + response.pending.len() == 1;
        for found in &response.matches {
            let line = text(found);
            let line = match is_alone {
                true => line.to_owned(),
                false => format!("{}  {line}", found.task_id),
            };
            cx.out.line(&text::visible(&line))?;
        }
        cx.out.flush()?;
        if !response.satisfied {
            out::note(&reason(response));
        }
    }
    cx.out.flush()?;
    Ok(exit(response, needed))
}

fn text(found: &TaskMatch) -> &str {
    let line = found.line.as_ref();
    line.and_then(|line| line.text.as_deref()).unwrap_or("-")
}

/// A clause that names the tasks without a line.
fn reason(response: &WaitResponse) -> String {
    let ids = |is_wanted: fn(&BackgroundTask) -> bool| {
        let tasks = response.pending.iter().filter(|task| is_wanted(task));
        let ids: Vec<&str> = tasks.map(|task| task.id.as_str()).collect();
        ids.join(" ")
    };
    let finished = ids(status::is_finished);
    match finished.is_empty() {
        true => format!("timeout passed; no line matches: {}", ids(|_| true)),
        false => format!("finished without a line that matches: {finished}"),
    }
}

fn exit(response: &WaitResponse, needed: usize) -> Exit {
    let may_match = |task: &&BackgroundTask| !status::is_finished(task);
    let possible = response.met.len() + response.pending.iter().filter(may_match).count();
    match response.satisfied {
        true => Exit::Success,
        false if possible < needed => Exit::Failed,
        false => Exit::TimedOut,
    }
}

#[cfg(test)]
mod tests {
    use heeler_client::v1::TaskState;

    use super::*;

    fn pending(states: &[TaskState]) -> WaitResponse {
        let task = |&state: &TaskState| BackgroundTask {
            id: "a".to_owned(),
            state: state.into(),
            ..BackgroundTask::default()
        };
        WaitResponse {
            pending: states.iter().map(task).collect(),
            ..WaitResponse::default()
        }
    }

    /// O16
    #[test]
    fn a_timeout_and_an_end_without_a_line_have_different_exit_codes() {
        let (running, finished) = (TaskState::Running, TaskState::Completed);
        assert_eq!(exit(&pending(&[running]), 1), Exit::TimedOut);
        assert_eq!(exit(&pending(&[finished]), 1), Exit::Failed);
        assert_eq!(exit(&pending(&[finished, running]), 2), Exit::Failed);
        assert_eq!(exit(&pending(&[finished, running]), 1), Exit::TimedOut);
        assert!(reason(&pending(&[finished])).contains("finished without"));
        assert!(reason(&pending(&[running])).contains("timeout passed"));
    }
}
