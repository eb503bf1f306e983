//! Colours on a terminal.

use std::{env, io::IsTerminal};

use heeler_client::v1::{BackgroundTask, TaskState};

use crate::render::status;

/// The colours of tasks, one after the other.
const TASKS: [&str; 6] = ["36", "33", "32", "35", "34", "96"];

/// Returns whether colours are shown there: it is a terminal that is not dumb, and `NO_COLOR` is not set.
pub(crate) fn is_wanted_on(stream: &impl IsTerminal) -> bool {
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
    stream.is_terminal() && !is_set("NO_COLOR") && !is_dumb
}

/// Colours the state of a task in its line of a table, at the column where the states begin.
pub(crate) fn state(line: &str, column: usize, task: &BackgroundTask) -> String {
    let state = status::state(task);
    let (Some(code), Some(rest)) = (code(task), line.get(column..)) else {
        return line.to_owned();
    };
    match rest.strip_prefix(state) {
        Some(after) => format!("{}\x1b[{code}m{state}\x1b[0m{after}", &line[..column]),
        None => line.to_owned(),
    }
}

/// Colours a text that stands for the task with this index.
pub(crate) fn of_task(text: &str, index: usize) -> String {
    format!("\x1b[{}m{text}\x1b[0m", TASKS[index % TASKS.len()])
}

fn code(task: &BackgroundTask) -> Option<&'static str> {
    match task.state() {
        TaskState::Running | TaskState::Completed => Some("32"),
        TaskState::Queued | TaskState::Starting | TaskState::Stopping => Some("33"),
        TaskState::Failed | TaskState::TimedOut | TaskState::Lost => Some("31"),
        TaskState::Cancelled => Some("35"),
        TaskState::Unspecified => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_state_is_coloured() {
        let task = BackgroundTask {
            state: TaskState::Failed.into(),
            ..BackgroundTask::default()
        };
        assert_eq!(
            state("a  FAILED  7", 3, &task),
            "a  \x1b[31mFAILED\x1b[0m  7"
        );
        assert_eq!(state("a  FAI…", 3, &task), "a  FAI…");
        assert_eq!(state("é", 1, &task), "é");
    }
}
