//! The gRPC service behind an HTTP address.

use http::{Request, Response, request::Parts};
use prost::bytes::Bytes;
use tonic::{Status, body::Body, service::Routes};
use tower::{Layer, ServiceExt};

use crate::service::{
    metrics::Metrics,
    transport::{Admitted, Edge, Share},
};

/// A gRPC service, and the rule that says whose calls it takes.
pub(crate) trait Backend: Clone + Send + Sync + 'static {
    /// A request that is accepted, until its call is made.
    type Admitted: Send + Sync;

    /// Accepts the caller of a call, before the body is read.
    fn admit(&self, parts: &Parts) -> impl Future<Output = Result<Self::Admitted, Status>> + Send;

    /// Reads the body of a request. The share is the memory that it takes.
    fn read(
        &self,
        admitted: &Self::Admitted,
        body: Body,
        largest: usize,
    ) -> impl Future<Output = Result<(Bytes, Option<Share>), Status>> + Send;

    /// The metrics, for callers that may do everything; `None` if the backend has none.
    fn metrics(&self, parts: &Parts) -> impl Future<Output = Option<Result<Bytes, Status>>> + Send;

    /// Makes a gRPC call. One whose extensions have the memory of its request takes no other.
    fn call(
        &self,
        request: Request<Body>,
    ) -> impl Future<Output = Result<Response<Body>, Status>> + Send;
}

/// The service of this server, behind the layer of every call.
#[derive(Debug, Clone)]
pub(crate) struct InProcess {
    edge: Edge,
    routes: Routes,
    metrics: Metrics,
}

impl InProcess {
    pub(crate) fn new(edge: Edge, routes: Routes, metrics: Metrics) -> Self {
        Self {
            edge,
            routes,
            metrics,
        }
    }

    async fn text(&self, parts: &Parts) -> Result<Bytes, Status> {
        let call = self.edge.admit_to_all(parts).await?;
        let text = self.metrics.text().await?;
        call.hold(text.len());
        Ok(call.counted(text.into()))
    }
}

impl Backend for InProcess {
    type Admitted = Admitted;

    async fn admit(&self, parts: &Parts) -> Result<Admitted, Status> {
        self.edge.admit(parts).await
    }

    async fn read(
        &self,
        admitted: &Admitted,
        body: Body,
        largest: usize,
    ) -> Result<(Bytes, Option<Share>), Status> {
        self.edge.read_plain(admitted, body, largest).await
    }

    async fn metrics(&self, parts: &Parts) -> Option<Result<Bytes, Status>> {
        Some(self.text(parts).await)
    }

    async fn call(&self, request: Request<Body>) -> Result<Response<Body>, Status> {
        let service = self.edge.layer(self.routes.clone());
        match service.oneshot(request).await {
            Ok(response) => Ok(response),
            Err(never) => match never {},
        }
    }
}
