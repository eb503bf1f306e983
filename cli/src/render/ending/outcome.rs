//! The outcome of a task: exit code, signal, spawn error, unknown, or the status of a worker's result.

use heeler_client::v1::{
    BackgroundTask, EndReason, Outcome, SpawnError, SpawnStage, WorkerStatus,
    outcome::Result as Ended,
};

use super::causes;

/// The EXIT column of `ps`: one word.
pub(crate) fn word(task: &BackgroundTask) -> String {
    match result(task) {
        Some(Ended::ExitCode(code)) => code.to_string(),
        Some(Ended::Signal(signal)) => signal.name.clone(),
        Some(Ended::SpawnError(_)) => "no start".to_owned(),
        Some(Ended::Unknown(_)) => "unknown".to_owned(),
        Some(Ended::Worker(status)) => worker_status(*status).to_owned(),
        None => String::new(),
    }
}

/// The outcome of a task as a clause, with the cause of a kill that no client and no deadline asked for.
pub(crate) fn with_cause(task: &BackgroundTask) -> Option<String> {
    let outcome = clause(task.outcome.as_ref()?);
    let reason = task.end_reason();
    Some(match reason == EndReason::OutputLimit {
        true => format!("{outcome}: {}", causes::end_reason(reason)),
        false => outcome,
    })
}

/// A clause, such as `exit code 7` or `killed by SIGKILL`.
pub(crate) fn clause(outcome: &Outcome) -> String {
    match &outcome.result {
        Some(Ended::ExitCode(code)) => format!("exit code {code}"),
        Some(Ended::Signal(signal)) if signal.core_dumped => {
            format!("killed by {} (core dumped)", signal.name)
        }
        Some(Ended::Signal(signal)) => format!("killed by {}", signal.name),
        Some(Ended::SpawnError(error)) => {
            format!("failed to start: {}: {}", step(error), error.message)
        }
        Some(Ended::Unknown(unknown)) if unknown.detail.is_empty() => "exit unknown".to_owned(),
        Some(Ended::Unknown(unknown)) => format!("exit unknown: {}", unknown.detail),
        Some(Ended::Worker(status)) => format!("worker's result: {}", worker_status(*status)),
        None => "an outcome that this version of heeler does not know".to_owned(),
    }
}

/// The status of a worker's result, in a word.
pub(crate) fn worker_status(status: i32) -> &'static str {
    match WorkerStatus::try_from(status).unwrap_or_default() {
        WorkerStatus::Unspecified => "of an unknown status",
        WorkerStatus::Ok => "ok",
        WorkerStatus::Failed => "failed",
        WorkerStatus::Cancelled => "cancelled",
    }
}

/// The step that failed and its operand, such as `execute /usr/bin/make`.
fn step(error: &SpawnError) -> String {
    let step = match error.stage() {
        SpawnStage::Unspecified => "a step that this version of heeler does not know",
        SpawnStage::Shim => "start the shim",
        SpawnStage::TaskFile => "create the task file",
        SpawnStage::Pipes => "create the output pipes",
        SpawnStage::Process => "create the process",
        SpawnStage::WorkingDirectory => "enter the working directory",
        SpawnStage::Descriptors => "arrange the descriptors",
        SpawnStage::Exec => "execute",
    };
    format!("{step} {}", error.path).trim_end().to_owned()
}

/// The exit code that a shell would report: 128+n for signal n, none if the exit is not known.
pub(crate) fn exit_code(task: &BackgroundTask) -> Option<u8> {
    match result(task)? {
        Ended::ExitCode(code) => u8::try_from(*code & 0xff).ok(),
        Ended::Signal(signal) => u8::try_from(128 + (signal.number & 0x7f)).ok(),
        Ended::SpawnError(_) | Ended::Unknown(_) => None,
        Ended::Worker(status) => match WorkerStatus::try_from(*status).ok()? {
            WorkerStatus::Ok => Some(0),
            WorkerStatus::Failed => Some(1),
            WorkerStatus::Cancelled | WorkerStatus::Unspecified => None,
        },
    }
}

pub(crate) fn result(task: &BackgroundTask) -> Option<&Ended> {
    task.outcome.as_ref()?.result.as_ref()
}

#[cfg(test)]
mod tests {
    use heeler_client::v1::{SignalOutcome, UnknownOutcome};

    use super::*;

    fn with(result: Ended) -> BackgroundTask {
        let outcome = Some(Outcome {
            result: Some(result),
        });
        BackgroundTask {
            outcome,
            ..BackgroundTask::default()
        }
    }

    /// O8
    #[test]
    fn a_kill_by_the_output_limit_has_its_cause() {
        let mut task = with(killed());
        assert_eq!(with_cause(&task).as_deref(), Some("killed by SIGKILL"));
        task.end_reason = EndReason::OutputLimit.into();
        let expected = "killed by SIGKILL: it wrote too much output";
        assert_eq!(with_cause(&task).as_deref(), Some(expected));
        task.outcome = None;
        assert_eq!(with_cause(&task), None);
    }

    fn killed() -> Ended {
        Ended::Signal(SignalOutcome {
            number: 9,
            name: "SIGKILL".to_owned(),
            core_dumped: false,
        })
    }

    #[test]
    fn a_signal_is_reported_as_128_plus_its_number() {
        assert_eq!(exit_code(&with(killed())), Some(137));
        assert_eq!(exit_code(&with(Ended::ExitCode(3))), Some(3));
        let unknown = with(Ended::Unknown(UnknownOutcome::default()));
        assert_eq!(exit_code(&unknown), None);
        assert_eq!(exit_code(&BackgroundTask::default()), None);
    }

    #[test]
    fn a_signal_and_an_exit_code_are_shown_differently() {
        assert_eq!(word(&with(killed())), "SIGKILL");
        let exited = with(Ended::ExitCode(0));
        assert_eq!(clause(&exited.outcome.unwrap()), "exit code 0");
    }

    #[test]
    fn a_spawn_error_names_the_step_and_its_path() {
        let shown = |stage: SpawnStage, path: &str| {
            let error = SpawnError {
                stage: stage.into(),
                path: path.to_owned(),
                message: "it broke".to_owned(),
                errno: 0,
            };
            clause(&with(Ended::SpawnError(error)).outcome.unwrap())
        };
        let exec = shown(SpawnStage::Exec, "/bin/x");
        assert_eq!(exec, "failed to start: execute /bin/x: it broke");
        let shim = shown(SpawnStage::Shim, "");
        assert_eq!(shim, "failed to start: start the shim: it broke");
    }
}
