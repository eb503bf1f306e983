//! Requests that name tasks, to be completed with `..`. Nothing else in the tests says how a request
//! names its tasks.

use heeler_proto::v1::{
    CancelRequest, DetachRequest, ForcedStop, ReadOutputRequest, RemoveRequest, StopPolicy,
    TaskFilter, WaitRequest, cancel_request::How, read_output_request,
};
use prost_types::Duration;

use super::{ids, session};

/// A cancel of one task.
pub fn cancel(id: &str) -> CancelRequest {
    cancel_matching(ids([id]))
}

/// A cancel of a session's tasks.
pub fn cancel_session(id: &str) -> CancelRequest {
    cancel_matching(session(id))
}

/// A cancel of the tasks that match.
pub fn cancel_matching(filter: TaskFilter) -> CancelRequest {
    CancelRequest {
        filter: Some(filter),
        ..Default::default()
    }
}

/// A kill of the whole tree at once.
pub fn force() -> Option<How> {
    Some(How::Force(ForcedStop {}))
}

/// A stop with a grace of its own.
pub fn grace(grace: Duration) -> Option<How> {
    Some(How::Graceful(StopPolicy {
        grace: Some(grace),
        ..Default::default()
    }))
}

/// A detach of one task.
pub fn detach(id: &str) -> DetachRequest {
    detach_matching(ids([id]))
}

/// A detach of a session's foreground tasks.
pub fn detach_session(id: &str) -> DetachRequest {
    detach_matching(session(id))
}

/// A detach of the foreground tasks that match.
pub fn detach_matching(filter: TaskFilter) -> DetachRequest {
    DetachRequest {
        filter: Some(filter),
        ..Default::default()
    }
}

/// A removal of tasks by id.
pub fn remove<T: Into<String>>(task_ids: impl IntoIterator<Item = T>) -> RemoveRequest {
    remove_finished(ids(task_ids))
}

/// A removal of the finished tasks that match.
pub fn remove_finished(filter: TaskFilter) -> RemoveRequest {
    RemoveRequest {
        filter: Some(filter),
    }
}

/// A wait for tasks by id.
pub fn wait<T: Into<String>>(task_ids: impl IntoIterator<Item = T>) -> WaitRequest {
    wait_matching(ids(task_ids))
}

/// A wait for a session's tasks.
pub fn wait_for_session(id: &str) -> WaitRequest {
    wait_matching(session(id))
}

/// A wait for the tasks that match.
pub fn wait_matching(filter: TaskFilter) -> WaitRequest {
    WaitRequest {
        filter: Some(filter),
        ..Default::default()
    }
}

/// A snapshot of a task's output from an offset.
pub fn read(id: &str, offset: u64) -> ReadOutputRequest {
    ReadOutputRequest {
        task_id: id.to_owned(),
        start: Some(read_output_request::Start::Offset(offset)),
        ..Default::default()
    }
}

/// A snapshot of the last bytes of a task's output.
pub fn read_tail(id: &str, bytes: u64) -> ReadOutputRequest {
    ReadOutputRequest {
        task_id: id.to_owned(),
        start: Some(read_output_request::Start::TailBytes(bytes)),
        ..Default::default()
    }
}
