//! The layer in front of every call: it identifies the caller, refuses calls while the server is not
//! ready, limits their number, enforces the deadline and logs.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Instant,
};

use heeler_proto::v1::ErrorReason;
use http::{HeaderValue, Request, Response, header::AUTHORIZATION};
use http_body_util::BodyExt;
use tonic::{Code, Status, body::Body};
use tower::{Layer, Service};

use super::{
    connection::{Client, Peer},
    deadline, message_stream,
    methods::{self, Pool, Target},
    pools::Pools,
    request_body,
    shares::{Caller, Share},
    token::Token,
};
use crate::{process::own_uid, service::wire::refusal::Refusal};

const REQUEST_ID: &str = "x-request-id";

/// Admits calls while it is open: from the end of recovery to the beginning of a shutdown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gate(Arc<AtomicBool>);

impl Gate {
    pub(crate) fn open(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(crate) fn close(&self) {
        self.0.store(false, Ordering::Release);
    }

    fn is_open(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The layer, one for the whole server.
#[derive(Debug, Clone)]
pub(crate) struct Edge {
    gate: Gate,
    token: Option<Arc<Token>>,
    largest_request: usize,
    pools: Pools,
}

/// A service behind the [`Edge`].
#[derive(Debug, Clone)]
pub(crate) struct EdgeService<S> {
    edge: Edge,
    inner: S,
}

impl Edge {
    /// Callers over TCP must present the token. A request with more than `largest_request` bytes is not
    /// read.
    pub(crate) fn new(gate: Gate, token: Option<Token>, largest_request: usize) -> Self {
        Self {
            gate,
            token: token.map(Arc::new),
            largest_request,
            pools: Pools::default(),
        }
    }

    /// Accepts callers that run as the server's user or present the token.
    fn identify<B>(&self, request: &Request<B>) -> Result<Caller, Refusal> {
        let Some(client) = request.extensions().get::<Client>() else {
            return Err(unidentified());
        };
        match (&client.peer, &self.token) {
            (Peer::Local(info), _) => check_user(info.peer_cred.map(|cred| cred.uid()))?,
            (Peer::Remote(authentication), Some(token)) => {
                token.check(request.headers())?;
                authentication.succeed();
            }
            (Peer::Remote(_), None) => return Err(unidentified()),
        }
        Ok(client.caller)
    }

    /// Completes the answer.
    fn finish(&self, mut response: Response<Body>, id: HeaderValue) -> Response<Body> {
        if let Some(refusal) = unreadable(&response) {
            response = Status::from(refusal).into_http();
        }
        response.headers_mut().insert(REQUEST_ID, id);
        response
    }

    /// Serves one call.
    async fn serve<S>(
        &self,
        caller: Caller,
        inner: S,
        request: Request<Body>,
    ) -> Result<Result<Response<Body>, S::Error>, Status>
    where
        S: Service<Request<Body>, Response = Response<Body>>,
    {
        let _open = self.pools.open(caller)?;
        match methods::target(request.uri().path()) {
            Target::Other => {
                let place = self.pools.other(caller)?;
                Ok(serve_other(place, inner, request).await)
            }
            Target::OtherStream => {
                let place = self.pools.other_stream(caller)?;
                Ok(serve_other(place, inner, request).await)
            }
            Target::Rpc(_) | Target::Unknown if !self.gate.is_open() => {
                let message = "the server is starting or shutting down; try again";
                Err(Refusal::not_serving(message).into())
            }
            Target::Rpc(Pool::Duplex) => self.serve_duplex(caller, inner, request).await,
            Target::Rpc(pool) => self.serve_rpc(caller, pool, inner, request).await,
            Target::Unknown => {
                let path = request.uri().path();
                let message = format!("the service has no method {}", Refusal::shown(path));
                Err(Status::unimplemented(message))
            }
        }
    }

    /// Serves an RPC. Everything that is awaited here is polled by the server, however slowly the client
    /// reads: only streams go on after it.
    async fn serve_rpc<S>(
        &self,
        caller: Caller,
        pool: Pool,
        mut inner: S,
        request: Request<Body>,
    ) -> Result<Result<Response<Body>, S::Error>, Status>
    where
        S: Service<Request<Body>, Response = Response<Body>>,
    {
        let (mut parts, body) = request.into_parts();
        let requests = &self.pools.requests;
        let read = request_body::read(body, caller, requests, self.largest_request);
        let (body, _memory) = read.await?;
        let call = self.pools.call(caller, pool).await?;
        if matches!(pool, Pool::Short | Pool::Start) {
            call.reserve_short().await;
        }
        parts.extensions.insert(call.clone());
        let answering = inner.call(Request::from_parts(parts, body));
        let answered = match pool {
            Pool::Start => self.pools.await_start(caller, &call, answering).await,
            Pool::Short | Pool::Stop | Pool::Poll | Pool::Stream | Pool::Duplex => answering.await,
        };
        Ok(match (answered, pool) {
            (Ok(stream), Pool::Stream | Pool::Duplex) => Ok(stream),
            (Ok(answer), Pool::Short | Pool::Start | Pool::Stop | Pool::Poll) => {
                Ok(call.complete(answer).await)
            }
            (Err(error), _) => Err(error),
        })
    }

    /// Serves a stream in both directions. Its messages are read by the stream of the answer, so a client
    /// that does not read is not read from.
    async fn serve_duplex<S>(
        &self,
        caller: Caller,
        mut inner: S,
        request: Request<Body>,
    ) -> Result<Result<Response<Body>, S::Error>, Status>
    where
        S: Service<Request<Body>, Response = Response<Body>>,
    {
        let call = self.pools.call(caller, Pool::Duplex).await?;
        let memory = self.pools.requests.clone();
        let mut request = request
            .map(|body| message_stream::measured(body, caller, memory, self.largest_request));
        request.extensions_mut().insert(call);
        Ok(inner.call(request).await)
    }
}

/// Serves a call of another service. Its answer, which may be a stream, keeps the place to its end.
async fn serve_other<S>(
    place: Share,
    mut inner: S,
    request: Request<Body>,
) -> Result<Response<Body>, S::Error>
where
    S: Service<Request<Body>, Response = Response<Body>>,
{
    let response = inner.call(request).await?;
    let keep_place = move |frame| {
        let _place = &place;
        frame
    };
    Ok(response.map(|body| Body::new(body.map_frame(keep_place))))
}

/// The socket's mode keeps other users out. This check holds even if the mode was changed.
fn check_user(uid: Option<u32>) -> Result<(), Refusal> {
    match uid {
        Some(uid) if uid == own_uid() => Ok(()),
        Some(uid) => {
            let message = format!("this server serves uid {} only, not uid {uid}", own_uid());
            Err(
                Refusal::new(Code::PermissionDenied, ErrorReason::ForeignUser, message)
                    .with("uid", uid),
            )
        }
        None => Err(unidentified()),
    }
}

fn unidentified() -> Refusal {
    let message = "the kernel does not identify the caller";
    Refusal::new(Code::PermissionDenied, ErrorReason::ForeignUser, message)
}

/// The refusal of a request that tonic could not decode: refusals of the server have details.
fn unreadable(response: &Response<Body>) -> Option<Refusal> {
    let headers = response.headers();
    let is_internal = headers
        .get(Status::GRPC_STATUS)
        .is_some_and(|code| code == "13");
    if !is_internal || headers.contains_key(Status::GRPC_STATUS_DETAILS) {
        return None;
    }
    let status = Status::from_header_map(headers)?;
    let message = format!("the request is not a valid message: {}", status.message());
    let reason = ErrorReason::RequestUnreadable;
    Some(Refusal::new(Code::InvalidArgument, reason, message))
}

impl<S> Layer<S> for Edge {
    type Service = EdgeService<S>;

    fn layer(&self, inner: S) -> EdgeService<S> {
        EdgeService {
            edge: self.clone(),
            inner,
        }
    }
}

impl<S> Service<Request<Body>> for EdgeService<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        // The service that is ready takes this call; its clone takes the next.
        let clone = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, clone);
        let edge = self.edge.clone();
        let id = request_id(&request);
        let method = request.uri().path().to_owned();
        let caller = edge.identify(&request);
        // No handler needs the token.
        request.headers_mut().remove(AUTHORIZATION);
        let deadline = deadline::of(request.headers());
        Box::pin(async move {
            let begun = Instant::now();
            let answer = async { edge.serve(caller?, inner, request).await };
            let response = match deadline::within(deadline, answer).await {
                Some(Ok(answered)) => answered?,
                Some(Err(status)) => status.into_http(),
                None => {
                    Status::deadline_exceeded("the deadline of the call has passed").into_http()
                }
            };
            let response = edge.finish(response, id.clone());
            let status = response
                .headers()
                .get(Status::GRPC_STATUS)
                .and_then(|code| code.to_str().ok());
            let elapsed = begun.elapsed().as_micros() as u64;
            tracing::debug!(method, request_id = ?id, status, elapsed_micros = elapsed, "call");
            Ok(response)
        })
    }
}

/// The caller's id for the call, or a new one.
fn request_id<B>(request: &Request<B>) -> HeaderValue {
    match request.headers().get(REQUEST_ID) {
        Some(given) if given.len() <= 128 => given.clone(),
        Some(_) | None => HeaderValue::try_from(uuid::Uuid::now_v7().to_string())
            .unwrap_or(HeaderValue::from_static("unnamed")),
    }
}
