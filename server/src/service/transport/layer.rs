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
    time::{Duration, Instant},
};

use heeler_proto::v1::ErrorReason;
use http::{HeaderValue, Request, Response, header::AUTHORIZATION};
use tokio::time::sleep;
use tonic::{Code, Status, body::Body};
use tower::{Layer, Service};

use super::{
    call::Call,
    connection::{Client, Peer},
    deadline,
    methods::{self, Pool, Target},
    request_body,
    shares::{Caller, First, Share, Shares},
    token::Token,
};
use crate::{process::own_uid, service::wire::refusal::Refusal};

/// Maximum number of short calls at a time; further calls wait.
const SHORT_CALLS: usize = 512;
/// Maximum number of cancels and shutdowns at a time; further calls are refused.
const STOP_CALLS: usize = 16 * 1024;
/// Maximum number of long polls and streams at a time; further calls are refused.
const LONG_CALLS: usize = 16 * 1024;
/// Maximum number of health checks and reflections at a time; further calls are refused.
const OTHER_CALLS: usize = 1024;
/// Maximum memory for large requests that arrive or wait for a place; further requests are not read.
const REQUEST_MEMORY: usize = 32 << 20;
/// Maximum memory for answers that are not read; further calls wait. A client gets half at most: many
/// times what keeps a fast connection busy.
const ANSWER_MEMORY: usize = 96 << 20;
/// The time after which a Spawn is taken for one that waits: a start takes some milliseconds.
const SHORT_START: Duration = Duration::from_millis(200);

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
    short: Shares,
    stops: Shares,
    long: Shares,
    others: Shares,
    requests: Shares,
    answers: Shares,
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
            short: Shares::new(SHORT_CALLS, First::Granted),
            stops: Shares::new(STOP_CALLS, First::Granted),
            long: Shares::new(LONG_CALLS, First::Granted),
            others: Shares::new(OTHER_CALLS, First::Granted),
            requests: Shares::new(REQUEST_MEMORY, First::Granted),
            answers: Shares::new(ANSWER_MEMORY, First::Granted),
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
        match self.target(request.uri().path())? {
            Some(pool) => self.serve_rpc(caller, pool, inner, request).await,
            None => self.serve_other(caller, inner, request).await,
        }
    }

    /// The pool of an RPC; `None` for another service.
    fn target(&self, path: &str) -> Result<Option<Pool>, Status> {
        match methods::target(path) {
            Target::Other => Ok(None),
            Target::Rpc(_) | Target::Unknown if !self.gate.is_open() => {
                let message = "the server is starting or shutting down; try again";
                Err(Refusal::not_serving(message).into())
            }
            Target::Rpc(pool) => Ok(Some(pool)),
            Target::Unknown => {
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
        // Memory of the request, a place, memory of the answer: always in this order, so that no two calls
        // wait for each other.
        let requests = &self.requests;
        let read = request_body::read(body, caller, requests, self.largest_request);
        let (body, _memory) = read.await?;
        let place = self.place(caller, pool).await?;
        let call = Call::new(caller, self.answers.clone(), place);
        if matches!(pool, Pool::Short | Pool::Start) {
            call.reserve_short().await;
        }
        parts.extensions.insert(call.clone());
        let answering = inner.call(Request::from_parts(parts, body));
        let answered = match pool {
            Pool::Start => self.await_start(caller, &call, answering).await,
            Pool::Short | Pool::Stop | Pool::Poll | Pool::Stream => answering.await,
        };
        Ok(match (answered, pool) {
            (Ok(stream), Pool::Stream) => Ok(stream),
            (Ok(answer), Pool::Short | Pool::Start | Pool::Stop | Pool::Poll) => {
                Ok(call.complete(answer).await)
            }
            (Err(error), _) => Err(error),
        })
    }

    /// Serves a health check or a reflection. A stream of one takes no place after its begin.
    async fn serve_other<S>(
        &self,
        caller: Caller,
        mut inner: S,
        request: Request<Body>,
    ) -> Result<Result<Response<Body>, S::Error>, Status>
    where
        S: Service<Request<Body>, Response = Response<Body>>,
    {
        let _place = immediate(&self.others, caller, OTHER_CALLS)?;
        Ok(inner.call(request).await)
    }

    async fn place(&self, caller: Caller, pool: Pool) -> Result<Share, Refusal> {
        match pool {
            Pool::Short | Pool::Start => Ok(self.short.take(caller, 1).await),
            Pool::Stop => immediate(&self.stops, caller, STOP_CALLS),
            Pool::Poll | Pool::Stream => immediate(&self.long, caller, LONG_CALLS),
        }
    }

    /// Awaits a start. One that takes long waits for the end of another task: it becomes a long call,
    /// and its place among the short ones is free again.
    async fn await_start<T>(
        &self,
        caller: Caller,
        call: &Call,
        start: impl Future<Output = T>,
    ) -> T {
        let mut start = std::pin::pin!(start);
        tokio::select! {
            biased;
            answered = &mut start => return answered,
            () = sleep(SHORT_START) => call.move_to(self.long.try_take(caller, 1)),
        }
        start.await
    }
}

fn immediate(places: &Shares, caller: Caller, max: usize) -> Result<Share, Refusal> {
    places.try_take(caller, 1).ok_or_else(|| {
        let message = format!(
            "call limit reached: this client has its share of the {max} such calls that can be open"
        );
        Refusal::new(Code::ResourceExhausted, ErrorReason::TooManyCalls, message).with("max", max)
    })
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
