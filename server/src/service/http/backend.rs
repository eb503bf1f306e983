//! The gRPC service behind an HTTP address.

use http::{Request, Response, request::Parts};
use prost::bytes::Bytes;
use tonic::{Status, body::Body, service::Routes};
use tower::{Layer, ServiceExt};

use crate::service::{
    metrics::Metrics,
    transport::{Edge, Share},
};

/// A gRPC service, and the rule that says whose calls it takes.
pub(crate) trait Backend: Clone + Send + Sync + 'static {
    /// Accepts a caller, before its body is read.
    fn admit(&self, parts: &Parts) -> Result<(), Status>;

    /// Reads the body of a request. The share is the memory that it takes.
    fn read(
        &self,
        parts: &Parts,
        body: Body,
        largest: usize,
    ) -> impl Future<Output = Result<(Bytes, Option<Share>), Status>> + Send;

    /// The metrics, for callers that may do everything; `None` if the backend has none.
    fn metrics(&self, parts: &Parts)
    -> impl Future<Output = Option<Result<String, Status>>> + Send;

    /// Makes a gRPC call.
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
}

impl Backend for InProcess {
    fn admit(&self, parts: &Parts) -> Result<(), Status> {
        self.edge.admit(parts)
    }

    async fn read(
        &self,
        parts: &Parts,
        body: Body,
        largest: usize,
    ) -> Result<(Bytes, Option<Share>), Status> {
        self.edge.read_plain(parts, body, largest).await
    }

    async fn metrics(&self, parts: &Parts) -> Option<Result<String, Status>> {
        Some(match self.edge.admit_to_all(parts).await {
            Ok(()) => self.metrics.text().await,
            Err(refused) => Err(refused),
        })
    }

    async fn call(&self, request: Request<Body>) -> Result<Response<Body>, Status> {
        let service = self.edge.layer(self.routes.clone());
        match service.oneshot(request).await {
            Ok(response) => Ok(response),
            Err(never) => match never {},
        }
    }
}
