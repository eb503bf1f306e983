//! Shutdown: stops the tasks or leaves them running, then requests the end of the server.

use heeler_proto::v1;
use tonic::Request;

use crate::{
    service::{
        Service,
        wire::{check, refusal::Refusal},
    },
    supervisor::{CancelMode, CancelRequest, Cascade, Stopped},
    task::{Filter, StopCause},
};

/// The treatment of live tasks.
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
    // In a future of its own, so that a caller that leaves has still ended the server.
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
        let revision = this.revision();
        this.end.request();
        v1::ShutdownResponse {
            stopped_tasks: finished as u32,
            live_tasks: live as u32,
            revision,
        }
    });
    ended.await.map_err(|_| Refusal::interrupted())
}

fn tasks(request: Request<v1::ShutdownRequest>) -> Result<Tasks, Refusal> {
    let actor = check::actor(&request, |request| &request.actor)?;
    let request = request.into_inner();
    let reason = check::reason(request.reason)?;
    let grace = check::optional_duration("grace", request.grace)?;
    match check::enumerated("tasks", request.tasks)? {
        v1::ShutdownTasks::Unspecified | v1::ShutdownTasks::LeaveRunning => match grace {
            Some(_) => Err(Refusal::field("grace", "is only allowed with STOP")),
            None => Ok(Tasks::LeaveRunning),
        },
        v1::ShutdownTasks::Stop => Ok(Tasks::Stop(CancelRequest {
            cause: StopCause::Shutdown,
            mode: Some(CancelMode::Graceful {
                grace,
                signal: None,
                soft_grace: None,
            }),
            actor,
            reason,
            cascade: Cascade::Alone,
        })),
    }
}
