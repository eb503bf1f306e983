//! The result of a worker.

use std::fmt::Display;

use heeler_proto::v1::{WorkerResult, WorkerStatus};

/// The result of a worker. Text is a success, and the error of a `Result` a failure.
///
/// ```
/// use heeler_client::WorkResult;
///
/// let done = WorkResult::ok("three findings").data(b"{}".to_vec());
/// let failed = WorkResult::from("x".parse::<u32>().map(|_| "a number"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct WorkResult(WorkerResult);

impl WorkResult {
    /// The work is done.
    pub fn ok(text: impl Into<String>) -> Self {
        Self::new(WorkerStatus::Ok, text)
    }

    /// The work failed.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::new(WorkerStatus::Failed, text)
    }

    /// The work was stopped before it was done; the text is what there was by then.
    pub fn cancelled(text: impl Into<String>) -> Self {
        Self::new(WorkerStatus::Cancelled, text)
    }

    /// The result for programs, up to 64 KiB.
    pub fn data(mut self, data: impl Into<Vec<u8>>) -> Self {
        self.0.data = data.into().into();
        self
    }

    fn new(status: WorkerStatus, text: impl Into<String>) -> Self {
        Self(WorkerResult {
            status: status.into(),
            text: text.into(),
            ..WorkerResult::default()
        })
    }
}

impl From<()> for WorkResult {
    fn from((): ()) -> Self {
        Self::ok("")
    }
}

impl From<&str> for WorkResult {
    fn from(text: &str) -> Self {
        Self::ok(text)
    }
}

impl From<String> for WorkResult {
    fn from(text: String) -> Self {
        Self::ok(text)
    }
}

impl<T: Into<WorkResult>, E: Display> From<Result<T, E>> for WorkResult {
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(done) => done.into(),
            Err(error) => Self::failed(error.to_string()),
        }
    }
}

impl From<WorkResult> for WorkerResult {
    fn from(result: WorkResult) -> Self {
        result.0
    }
}
