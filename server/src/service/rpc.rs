//! The calls, a file each: it reads the request, asks the supervisor or the journal, and answers.

mod attach;
mod bookmarks;
mod cancel;
mod detach;
mod follow_output;
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
mod inspect;
mod list;
mod list_queues;
mod read_output;
mod reader;
mod remove;
mod report_progress;
mod select;
mod send_message;
mod shutdown;
mod spawn;
mod update_queue;
mod update_task;
mod wait;
mod watch_events;
mod work;

use heeler_proto::{Encoded, server::BackgroundTasks, v1};
use tonic::{Request, Response, Status, Streaming};

use super::{Service, transport::Call, wire::stream::Messages};

#[tonic::async_trait]
impl BackgroundTasks for Service {
    type AttachStream = Messages<attach::Attachment>;
    type FollowOutputStream = Messages<follow_output::Follower>;
    type WatchEventsStream = Messages<watch_events::Watcher>;
    type WorkStream = Messages<work::Worker>;

    async fn spawn(
        &self,
        request: Request<v1::SpawnRequest>,
    ) -> Result<Response<v1::SpawnResponse>, Status> {
        let call = Call::of(request.extensions())?;
        let answer = spawn::spawn(self, request.into_inner(), &call).await?;
        Ok(Response::new(answer))
    }

    async fn attach(
        &self,
        request: Request<v1::AttachRequest>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        let call = Call::of(request.extensions())?;
        let stream = attach::attach(self, request.into_inner(), call).await?;
        Ok(Response::new(stream))
    }

    async fn detach(
        &self,
        request: Request<v1::DetachRequest>,
    ) -> Result<Response<v1::DetachResponse>, Status> {
        Ok(Response::new(detach::detach(self, request).await?))
    }

    async fn cancel(
        &self,
        request: Request<v1::CancelRequest>,
    ) -> Result<Response<v1::CancelResponse>, Status> {
        Ok(Response::new(cancel::cancel(self, request).await?))
    }

    async fn list(
        &self,
        request: Request<v1::ListRequest>,
    ) -> Result<Response<Encoded<v1::ListResponse>>, Status> {
        let call = Call::of(request.extensions())?;
        let answer = list::list(self, request.into_inner(), &call).await?;
        Ok(Response::new(answer))
    }

    async fn inspect(
        &self,
        request: Request<v1::InspectRequest>,
    ) -> Result<Response<Encoded<v1::InspectResponse>>, Status> {
        let call = Call::of(request.extensions())?;
        let answer = inspect::inspect(self, request.into_inner(), &call).await?;
        Ok(Response::new(answer))
    }

    async fn watch_events(
        &self,
        request: Request<v1::WatchEventsRequest>,
    ) -> Result<Response<Self::WatchEventsStream>, Status> {
        let call = Call::of(request.extensions())?;
        let stream = watch_events::watch_events(self, request.into_inner(), call).await?;
        Ok(Response::new(stream))
    }

    async fn wait(
        &self,
        request: Request<v1::WaitRequest>,
    ) -> Result<Response<v1::WaitResponse>, Status> {
        let call = Call::of(request.extensions())?;
        let answer = wait::wait(self, request.into_inner(), &call).await?;
        Ok(Response::new(answer))
    }

    async fn read_output(
        &self,
        request: Request<v1::ReadOutputRequest>,
    ) -> Result<Response<v1::ReadOutputResponse>, Status> {
        let call = Call::of(request.extensions())?;
        let answer = read_output::read_output(self, request.into_inner(), &call).await?;
        Ok(Response::new(answer))
    }

    async fn follow_output(
        &self,
        request: Request<v1::FollowOutputRequest>,
    ) -> Result<Response<Self::FollowOutputStream>, Status> {
        let call = Call::of(request.extensions())?;
        let stream = follow_output::follow_output(self, request.into_inner(), call).await?;
        Ok(Response::new(stream))
    }

    async fn update_task(
        &self,
        request: Request<v1::UpdateTaskRequest>,
    ) -> Result<Response<v1::UpdateTaskResponse>, Status> {
        let call = Call::of(request.extensions())?;
        let answer = update_task::update_task(self, request.into_inner(), &call).await?;
        Ok(Response::new(answer))
    }

    async fn work(
        &self,
        request: Request<Streaming<v1::WorkRequest>>,
    ) -> Result<Response<Self::WorkStream>, Status> {
        let call = Call::of(request.extensions())?;
        Ok(Response::new(work::work(self, request.into_inner(), call)))
    }

    async fn report_progress(
        &self,
        request: Request<v1::ReportProgressRequest>,
    ) -> Result<Response<v1::ReportProgressResponse>, Status> {
        Ok(Response::new(
            report_progress::report_progress(self, request.into_inner()).await?,
        ))
    }

    async fn send_message(
        &self,
        request: Request<v1::SendMessageRequest>,
    ) -> Result<Response<v1::SendMessageResponse>, Status> {
        Ok(Response::new(
            send_message::send_message(self, request).await?,
        ))
    }

    async fn remove(
        &self,
        request: Request<v1::RemoveRequest>,
    ) -> Result<Response<v1::RemoveResponse>, Status> {
        Ok(Response::new(
            remove::remove(self, request.into_inner()).await?,
        ))
    }

    async fn update_queue(
        &self,
        request: Request<v1::UpdateQueueRequest>,
    ) -> Result<Response<v1::UpdateQueueResponse>, Status> {
        Ok(Response::new(
            update_queue::update_queue(self, request.into_inner()).await?,
        ))
    }

    async fn list_queues(
        &self,
        _request: Request<v1::ListQueuesRequest>,
    ) -> Result<Response<v1::ListQueuesResponse>, Status> {
        Ok(Response::new(list_queues::list_queues(self)))
    }

    async fn shutdown(
        &self,
        request: Request<v1::ShutdownRequest>,
    ) -> Result<Response<v1::ShutdownResponse>, Status> {
        Ok(Response::new(shutdown::shutdown(self, request).await?))
    }
}
