//! ReportProgress: a report of a worker that needs no stream, and its question whether to stop.

use heeler_proto::v1;

use crate::{
    service::{
        Service,
        wire::{check, refusal::Refusal, work},
    },
    supervisor::Listens,
};

pub(super) async fn report_progress(
    service: &Service,
    request: v1::ReportProgressRequest,
) -> Result<v1::ReportProgressResponse, Refusal> {
    let id = check::task_id("task_id", &request.task_id)?;
    let update = request.update.map(work::update).transpose();
    let update = update.map_err(|refusal| refusal.within("update"))?;
    let listens = match request.listens {
        true => Listens::Yes,
        false => Listens::No,
    };
    service.check_reports(&id).await?;
    let task = service.supervisor.report(&id, update, listens).await?;
    let task = task.ok_or_else(|| Refusal::task_not_found(id.as_str()))?;
    Ok(v1::ReportProgressResponse {
        cancel: work::cancel(&task),
    })
}
