//! The page of a daemon that listens on no HTTP address: a server in the process of `heeler dashboard`,
//! whose calls go to the daemon with the rights of its user.

use std::{fmt, io, net::SocketAddr};

use http::{Request, Response, request::Parts};
use prost::bytes::Bytes;
use tokio::{net::TcpListener, sync::watch};
use tokio_stream::{StreamExt, wrappers::TcpListenerStream};
use tonic::{Status, body::Body};
use tower::{Service, ServiceExt};

use super::{Front, Guard, backend::Backend, serve};
use crate::{
    config::HttpAccess,
    service::{
        Closing,
        transport::{Authentication, Share, Token, Unauthenticated, collect},
    },
};

/// The reason why the page cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum DashboardError {
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("{address} is reachable from other machines: the page needs an address such as 127.0.0.1:{}", address.port())]
    Exposed { address: SocketAddr },
    #[error("cannot make a token: {0}")]
    Token(io::Error),
}

/// The page and the calls of a daemon, on an address of this machine. Its token lives as long as it does.
#[derive(Debug)]
pub struct Dashboard {
    listener: TcpListener,
    address: SocketAddr,
    token: Token,
    access: HttpAccess,
}

impl Dashboard {
    /// Listens on a loopback address; port 0 takes a free one.
    pub async fn bind(address: SocketAddr, access: HttpAccess) -> Result<Self, DashboardError> {
        if !address.ip().to_canonical().is_loopback() {
            return Err(DashboardError::Exposed { address });
        }
        let failed = |source| DashboardError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        Ok(Self {
            address: listener.local_addr().map_err(failed)?,
            listener,
            token: Token::random().map_err(DashboardError::Token)?,
            access,
        })
    }

    /// The address for a browser. The fragment has the token, which a browser does not send.
    pub fn url(&self) -> String {
        format!("http://{}/#token={}", self.address, self.token.text())
    }

    /// Serves until `shutdown` completes. Calls are made through `daemon`, a gRPC channel.
    pub async fn serve<S, R>(self, daemon: S, shutdown: impl Future<Output = ()>)
    where
        S: Service<Request<Body>, Response = Response<R>> + Clone + Send + Sync + 'static,
        S::Error: fmt::Display + Send,
        S::Future: Send,
        R: http_body::Body<Data = Bytes> + Send + 'static,
        R::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let proxy = Proxy {
            token: self.token,
            daemon,
        };
        let guard = Guard::new("http", self.address, &[], &[]);
        let front = Front::new(proxy, guard, self.access);
        // Ends with this future.
        let (_open, closing) = watch::channel(false);
        // Any user of this machine can connect.
        let unauthenticated = Unauthenticated::default();
        let connections = TcpListenerStream::new(self.listener)
            .map(|accepted| accepted.map(|stream| unauthenticated.admit(stream)));
        tokio::select! {
            () = serve(connections, front, Closing::new(closing)) => {}
            () = shutdown => {}
        }
    }
}

/// A daemon behind a gRPC channel.
#[derive(Debug, Clone)]
struct Proxy<S> {
    token: Token,
    daemon: S,
}

impl<S, R> Backend for Proxy<S>
where
    S: Service<Request<Body>, Response = Response<R>> + Clone + Send + Sync + 'static,
    S::Error: fmt::Display + Send,
    S::Future: Send,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Admitted = ();

    async fn admit(&self, parts: &Parts) -> Result<(), Status> {
        // The token of a task is for the daemon, which knows its tasks.
        self.token.check(&parts.headers, |_| None)?;
        if let Some(authentication) = parts.extensions.get::<Authentication>() {
            authentication.succeed();
        }
        Ok(())
    }

    async fn read(
        &self,
        (): &(),
        body: Body,
        largest: usize,
    ) -> Result<(Bytes, Option<Share>), Status> {
        Ok((collect(body, largest).await?, None))
    }

    async fn metrics(&self, _parts: &Parts) -> Option<Result<Bytes, Status>> {
        None
    }

    async fn call(&self, request: Request<Body>) -> Result<Response<Body>, Status> {
        let (mut parts, body) = request.into_parts();
        // The token is for this process alone, and so is what it knows of the connection.
        parts.headers.remove(http::header::AUTHORIZATION);
        parts.extensions = http::Extensions::new();
        let answered = self
            .daemon
            .clone()
            .oneshot(Request::from_parts(parts, body));
        match answered.await {
            Ok(response) => Ok(response.map(Body::new)),
            Err(error) => Err(Status::unavailable(format!(
                "the daemon cannot be reached: {error}"
            ))),
        }
    }
}
