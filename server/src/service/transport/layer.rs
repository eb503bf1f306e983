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
use http::{HeaderMap, HeaderValue, Request, Response, header::AUTHORIZATION};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::{Code, Status, body::Body};
use tower::{Layer, Service};

use super::{
    connection::Peer,
    deadline,
    methods::{self, Pool, Target},
    token::Token,
};
use crate::{process::own_uid, service::wire::refusal::Refusal};

/// Maximum number of short calls at a time; further calls wait.
const SHORT_CALLS: usize = 512;
/// Maximum number of cancels and shutdowns at a time; further calls are refused.
const STOP_CALLS: usize = 16 * 1024;
/// Maximum number of long polls and streams at a time; further calls are refused.
const LONG_CALLS: usize = 16 * 1024;

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

/// A place in a pool of calls. A stream keeps it until it ends.
#[derive(Debug, Clone)]
pub(crate) struct CallPermit(
    #[allow(dead_code, reason = "held, never read")] Arc<OwnedSemaphorePermit>,
);

/// The layer, one for the whole server.
#[derive(Debug, Clone)]
pub(crate) struct Edge {
    gate: Gate,
    token: Option<Arc<Token>>,
    largest_request: usize,
    short: Arc<Semaphore>,
    stops: Arc<Semaphore>,
    long: Arc<Semaphore>,
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
            short: Arc::new(Semaphore::new(SHORT_CALLS)),
            stops: Arc::new(Semaphore::new(STOP_CALLS)),
            long: Arc::new(Semaphore::new(LONG_CALLS)),
        }
    }

    /// Accepts callers that run as the server's user or present the token.
    fn identify<B>(&self, request: &Request<B>) -> Result<(), Refusal> {
        match (request.extensions().get::<Peer>(), &self.token) {
            (Some(Peer::Local(info)), _) => check_user(info.peer_cred.map(|cred| cred.uid())),
            (Some(Peer::Remote(authentication)), Some(token)) => {
                token.check(request.headers())?;
                authentication.succeed();
                Ok(())
            }
            (Some(Peer::Remote(_)), None) | (None, _) => check_user(None),
        }
    }

    /// Completes the answer.
    fn finish(&self, mut response: Response<Body>, id: HeaderValue) -> Response<Body> {
        if is_too_large(response.headers()) {
            response = Status::from(Refusal::too_large(self.largest_request)).into_http();
        }
        response.headers_mut().insert(REQUEST_ID, id);
        response
    }

    async fn admit(&self, path: &str) -> Result<CallPermit, Status> {
        let target = methods::target(path);
        if target != Target::Other && !self.gate.is_open() {
            let refusal =
                Refusal::not_serving("the server is starting or shutting down; try again");
            return Err(refusal.into());
        }
        let permit = match target {
            Target::Rpc(Pool::Short) | Target::Other => wait_for_place(&self.short).await?,
            Target::Rpc(Pool::Stop) => place(&self.stops, STOP_CALLS)?,
            Target::Rpc(Pool::Long) => place(&self.long, LONG_CALLS)?,
            Target::Unknown => {
                let message = format!("the service has no method {}", Refusal::shown(path));
                return Err(Status::unimplemented(message));
            }
        };
        Ok(CallPermit(Arc::new(permit)))
    }
}

async fn wait_for_place(places: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Refusal> {
    let permit = Arc::clone(places).acquire_owned().await;
    permit.map_err(|_| Refusal::shutting_down())
}

fn place(places: &Arc<Semaphore>, max: usize) -> Result<OwnedSemaphorePermit, Refusal> {
    Arc::clone(places).try_acquire_owned().map_err(|_| {
        let message = format!("call limit reached: {max} of {max} such calls are open");
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
        None => {
            let message = "the kernel does not identify the caller";
            Err(Refusal::new(
                Code::PermissionDenied,
                ErrorReason::ForeignUser,
                message,
            ))
        }
    }
}

/// True for tonic's own refusal of a message that is too large: refusals of the server have details.
fn is_too_large(headers: &HeaderMap) -> bool {
    let out_of_range = headers
        .get(Status::GRPC_STATUS)
        .is_some_and(|code| code == "11");
    out_of_range && !headers.contains_key(Status::GRPC_STATUS_DETAILS)
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

impl<S, B> Service<Request<B>> for EdgeService<S>
where
    S: Service<Request<B>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        // The service that is ready takes this call; its clone takes the next.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let edge = self.edge.clone();
        let id = request_id(&request);
        let method = request.uri().path().to_owned();
        let caller = edge.identify(&request);
        // No handler needs the token.
        request.headers_mut().remove(AUTHORIZATION);
        let deadline = deadline::of(request.headers());
        Box::pin(async move {
            let begun = Instant::now();
            let answer = async {
                caller?;
                let permit = edge.admit(&method).await?;
                request.extensions_mut().insert(permit.clone());
                let answered = inner.call(request).await;
                drop(permit);
                Ok::<_, Status>(answered)
            };
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
