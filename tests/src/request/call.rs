//! Requests that name tasks, to be completed with `..`. Nothing else in the tests says how a request
//! names its tasks.

use heeler_proto::v1::{
    CancelRequest, DetachRequest, ReadOutputRequest, RemoveRequest, TaskFilter, TaskIds,
    WaitRequest, cancel_request, detach_request, read_output_request, remove_request,
};

/// A cancel of one task.
pub fn cancel(id: &str) -> CancelRequest {
    cancel_target(cancel_request::Target::TaskId(id.to_owned()))
}

/// A cancel of a session's tasks.
pub fn cancel_session(id: &str) -> CancelRequest {
    cancel_target(cancel_request::Target::SessionId(id.to_owned()))
}

/// A cancel of the tasks that match.
pub fn cancel_matching(filter: TaskFilter) -> CancelRequest {
    cancel_target(cancel_request::Target::Filter(filter))
}

fn cancel_target(target: cancel_request::Target) -> CancelRequest {
    CancelRequest {
        target: Some(target),
        ..Default::default()
    }
}

/// A detach of one task.
pub fn detach(id: &str) -> DetachRequest {
    DetachRequest {
        target: Some(detach_request::Target::TaskId(id.to_owned())),
        ..Default::default()
    }
}

/// A detach of a session's foreground tasks.
pub fn detach_session(id: &str) -> DetachRequest {
    DetachRequest {
        target: Some(detach_request::Target::SessionId(id.to_owned())),
        ..Default::default()
    }
}

/// A removal of tasks by id.
pub fn remove<T: Into<String>>(ids: impl IntoIterator<Item = T>) -> RemoveRequest {
    let task_ids = ids.into_iter().map(Into::into).collect();
    RemoveRequest {
        target: Some(remove_request::Target::Tasks(TaskIds { task_ids })),
    }
}

/// A removal of the finished tasks that match.
pub fn remove_finished(filter: TaskFilter) -> RemoveRequest {
    RemoveRequest {
        target: Some(remove_request::Target::Finished(filter)),
    }
}

/// A wait for tasks by id.
pub fn wait<T: Into<String>>(ids: impl IntoIterator<Item = T>) -> WaitRequest {
    WaitRequest {
        task_ids: ids.into_iter().map(Into::into).collect(),
        ..Default::default()
    }
}

/// A wait for a session's tasks.
pub fn wait_for_session(id: &str) -> WaitRequest {
    WaitRequest {
        session_id: id.to_owned(),
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
