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
mod list_sessions;
mod read_output;
mod reader;
mod remove;
mod report_progress;
mod resize_terminal;
mod select;
mod send_message;
mod shutdown;
mod spawn;
mod update_queue;
mod update_task;
mod wait;
mod watch_events;
mod work;
mod write_input;

pub(super) use watch_events::events_after;

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
        let service = self.for_caller(request.extensions())?;
        let call = Call::of(request.extensions())?;
        let answer = spawn::spawn(&service, request.into_inner(), &call).await?;
        Ok(Response::new(answer))
    }

    async fn attach(
        &self,
        request: Request<v1::AttachRequest>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        let service = self.for_caller(request.extensions())?;
        let call = Call::of(request.extensions())?;
        let stream = attach::attach(&service, request.into_inner(), call).await?;
        Ok(Response::new(stream))
    }

    async fn detach(
        &self,
        request: Request<v1::DetachRequest>,
    ) -> Result<Response<v1::DetachResponse>, Status> {
        let service = self.for_caller(request.extensions())?;
        Ok(Response::new(detach::detach(&service, request).await?))
    }

    async fn cancel(
        &self,
        request: Request<v1::CancelRequest>,
    ) -> Result<Response<v1::CancelResponse>, Status> {
        let service = self.for_caller(request.extensions())?;
        Ok(Response::new(cancel::cancel(&service, request).await?))
    }

    async fn list(
        &self,
        request: Request<v1::ListRequest>,
    ) -> Result<Response<Encoded<v1::ListResponse>>, Status> {
        let service = self.for_caller(request.extensions())?;
        let call = Call::of(request.extensions())?;
        let answer = list::list(&service, request.into_inner(), &call).await?;
        Ok(Response::new(answer))
    }

    async fn inspect(
        &self,
        request: Request<v1::InspectRequest>,
    ) -> Result<Response<Encoded<v1::InspectResponse>>, Status> {
        let service = self.for_caller(request.extensions())?;
        let call = Call::of(request.extensions())?;
        let answer = inspect::inspect(&service, request.into_inner(), &call).await?;
        Ok(Response::new(answer))
    }

    async fn watch_events(
        &self,
        request: Request<v1::WatchEventsRequest>,
    ) -> Result<Response<Self::WatchEventsStream>, Status> {
        let service = self.for_caller(request.extensions())?;
        let call = Call::of(request.extensions())?;
        let stream = watch_events::watch_events(&service, request.into_inner(), call).await?;
        Ok(Response::new(stream))
    }

    async fn wait(
        &self,
        request: Request<v1::WaitRequest>,
    ) -> Result<Response<v1::WaitResponse>, Status> {
        let service = self.for_caller(request.extensions())?;
        let call = Call::of(request.extensions())?;
        let answer = wait::wait(&service, request.into_inner(), &call).await?;
        Ok(Response::new(answer))
    }

    async fn read_output(
        &self,
        request: Request<v1::ReadOutputRequest>,
    ) -> Result<Response<v1::ReadOutputResponse>, Status> {
        let service = self.for_caller(request.extensions())?;
        let call = Call::of(request.extensions())?;
        let answer = read_output::read_output(&service, request.into_inner(), &call).await?;
        Ok(Response::new(answer))
    }

    async fn follow_output(
        &self,
        request: Request<v1::FollowOutputRequest>,
    ) -> Result<Response<Self::FollowOutputStream>, Status> {
        let service = self.for_caller(request.extensions())?;
        let call = Call::of(request.extensions())?;
        let stream = follow_output::follow_output(&service, request.into_inner(), call).await?;
        Ok(Response::new(stream))
    }

    async fn write_input(
        &self,
        request: Request<v1::WriteInputRequest>,
    ) -> Result<Response<v1::WriteInputResponse>, Status> {
        let service = self.for_caller(request.extensions())?;
        Ok(Response::new(
            write_input::write_input(&service, request.into_inner()).await?,
        ))
    }

    async fn resize_terminal(
        &self,
        request: Request<v1::ResizeTerminalRequest>,
    ) -> Result<Response<v1::ResizeTerminalResponse>, Status> {
        let service = self.for_caller(request.extensions())?;
        Ok(Response::new(
            resize_terminal::resize_terminal(&service, request.into_inner()).await?,
        ))
    }

    async fn update_task(
        &self,
        request: Request<v1::UpdateTaskRequest>,
    ) -> Result<Response<v1::UpdateTaskResponse>, Status> {
        let service = self.for_caller(request.extensions())?;
        let call = Call::of(request.extensions())?;
        let answer = update_task::update_task(&service, request.into_inner(), &call).await?;
        Ok(Response::new(answer))
    }

    async fn work(
        &self,
        request: Request<Streaming<v1::WorkRequest>>,
    ) -> Result<Response<Self::WorkStream>, Status> {
        let service = self.for_caller(request.extensions())?;
        let call = Call::of(request.extensions())?;
        Ok(Response::new(work::work(
            &service,
            request.into_inner(),
            call,
        )))
    }

    async fn report_progress(
        &self,
        request: Request<v1::ReportProgressRequest>,
    ) -> Result<Response<v1::ReportProgressResponse>, Status> {
        let service = self.for_caller(request.extensions())?;
        Ok(Response::new(
            report_progress::report_progress(&service, request.into_inner()).await?,
        ))
    }

    async fn send_message(
        &self,
        request: Request<v1::SendMessageRequest>,
    ) -> Result<Response<v1::SendMessageResponse>, Status> {
        let service = self.for_caller(request.extensions())?;
        Ok(Response::new(
            send_message::send_message(&service, request).await?,
        ))
    }

    async fn remove(
        &self,
        request: Request<v1::RemoveRequest>,
    ) -> Result<Response<v1::RemoveResponse>, Status> {
        let service = self.for_caller(request.extensions())?;
        Ok(Response::new(
            remove::remove(&service, request.into_inner()).await?,
        ))
    }

    async fn update_queue(
        &self,
        request: Request<v1::UpdateQueueRequest>,
    ) -> Result<Response<v1::UpdateQueueResponse>, Status> {
        let service = self.for_caller(request.extensions())?;
        Ok(Response::new(
            update_queue::update_queue(&service, request.into_inner()).await?,
        ))
    }

    async fn list_queues(
        &self,
        request: Request<v1::ListQueuesRequest>,
    ) -> Result<Response<v1::ListQueuesResponse>, Status> {
        let service = self.for_caller(request.extensions())?;
        Ok(Response::new(list_queues::list_queues(&service)))
    }

    async fn list_sessions(
        &self,
        request: Request<v1::ListSessionsRequest>,
    ) -> Result<Response<v1::ListSessionsResponse>, Status> {
        let service = self.for_caller(request.extensions())?;
        let call = Call::of(request.extensions())?;
        let answer = list_sessions::list_sessions(&service, request.into_inner(), &call).await?;
        Ok(Response::new(answer))
    }

    async fn shutdown(
        &self,
        request: Request<v1::ShutdownRequest>,
    ) -> Result<Response<v1::ShutdownResponse>, Status> {
        let service = self.for_caller(request.extensions())?;
        Ok(Response::new(shutdown::shutdown(&service, request).await?))
    }
}
