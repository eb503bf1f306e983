//! Shutdown: sees to the tasks, then asks whoever runs the server to end it.

use heeler_proto::v1;
use tonic::Request;

use super::{Service, caller, check, refusal::Refusal};
use crate::{
    supervisor::{CancelMode, CancelRequest, Cascade, Stopped},
    task::{Filter, StopCause},
};

/// What becomes of the live tasks.
enum Tasks {
    LeaveRunning,
    Stop(CancelRequest),
}

pub(super) async fn shutdown(
    service: &Service,
    request: Request<v1::ShutdownRequest>,
) -> Result<v1::ShutdownResponse, Refusal> {
    let tasks = tasks(request)?;
    let this = service.clone();
    // In a future of its own: a caller that leaves meanwhile has still ended the server.
    let ended = tokio::spawn(async move {
        let Stopped { finished, live } = match tasks {
            Tasks::LeaveRunning => {
                this.supervisor.close();
                Stopped {
                    finished: 0,
                    live: this.supervisor.live_matching(&Filter::default()).len(),
                }
            }
            Tasks::Stop(order) => this.supervisor.stop_all(order).await,
        };
        let revision = this.journal.head().0;
        this.end.ask();
        v1::ShutdownResponse {
            stopped_tasks: finished as u32,
            live_tasks: live as u32,
            revision,
        }
    });
    ended.await.map_err(|_| Refusal::shutting_down())
}

fn tasks(request: Request<v1::ShutdownRequest>) -> Result<Tasks, Refusal> {
    let name = check::note("actor", request.get_ref().actor.clone(), check::SHORT_TEXT)?;
    let actor = caller(&request, name);
    let request = request.into_inner();
    let reason = check::note("reason", request.reason, check::REASON)?;
    let grace = request
        .grace
        .map(|span| check::duration("grace", span))
        .transpose()?;
    match check::enumerated("tasks", request.tasks)? {
        v1::ShutdownTasks::Unspecified | v1::ShutdownTasks::LeaveRunning => match grace {
            Some(_) => Err(Refusal::field("grace", "goes with STOP only")),
            None => Ok(Tasks::LeaveRunning),
        },
        v1::ShutdownTasks::Stop => Ok(Tasks::Stop(CancelRequest {
            cause: StopCause::Shutdown,
            mode: Some(CancelMode::Graceful {
                grace,
                signal: None,
            }),
            actor,
            reason,
            cascade: Cascade::Alone,
        })),
    }
}
