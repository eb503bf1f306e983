//! The calls, a file each: it reads the request, asks the supervisor or the journal, and answers.

mod attach;
mod cancel;
mod detach;
mod inspect;
mod list;
mod list_queues;
mod read_output;
mod remove;
mod select;
mod shutdown;
mod spawn;
mod update_queue;
mod wait;
mod watch_events;

use heeler_proto::{Encoded, server::BackgroundTasks, v1};
use tonic::{Request, Response, Status};

use super::{Service, wire::stream::Messages};

#[tonic::async_trait]
impl BackgroundTasks for Service {
    type AttachStream = Messages<attach::Attachment>;
    type WatchEventsStream = Messages<watch_events::Watcher>;

    async fn spawn(
        &self,
        request: Request<v1::SpawnRequest>,
    ) -> Result<Response<v1::SpawnResponse>, Status> {
        Ok(Response::new(
            spawn::spawn(self, request.into_inner()).await?,
        ))
    }

    async fn attach(
        &self,
        request: Request<v1::AttachRequest>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        Ok(Response::new(attach::attach(self, request).await?))
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
        Ok(Response::new(list::list(self, request.into_inner()).await?))
    }

    async fn inspect(
        &self,
        request: Request<v1::InspectRequest>,
    ) -> Result<Response<Encoded<v1::InspectResponse>>, Status> {
        Ok(Response::new(
            inspect::inspect(self, request.into_inner()).await?,
        ))
    }

    async fn watch_events(
        &self,
        request: Request<v1::WatchEventsRequest>,
    ) -> Result<Response<Self::WatchEventsStream>, Status> {
        Ok(Response::new(
            watch_events::watch_events(self, request).await?,
        ))
    }

    async fn wait(
        &self,
        request: Request<v1::WaitRequest>,
    ) -> Result<Response<v1::WaitResponse>, Status> {
        Ok(Response::new(wait::wait(self, request.into_inner()).await?))
    }

    async fn read_output(
        &self,
        request: Request<v1::ReadOutputRequest>,
    ) -> Result<Response<v1::ReadOutputResponse>, Status> {
        Ok(Response::new(
            read_output::read_output(self, request.into_inner()).await?,
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
