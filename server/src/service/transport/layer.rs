//! What every call passes through before its handler: who calls, whether the server is ready, how
//! many calls there are, its deadline, and a name for the log.

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

/// Whether calls are let in: not until every task has been taken back.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<AtomicBool>);

impl Gate {
    /// From now on they are.
    pub fn open(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// From now on they are not.
    pub fn close(&self) {
        self.0.store(false, Ordering::Release);
    }

    fn is_open(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A place among the calls that are being served; a stream keeps it for as long as it lasts.
#[derive(Debug, Clone)]
pub(crate) struct CallPermit(
    #[allow(dead_code, reason = "held, never read")] Arc<OwnedSemaphorePermit>,
);

/// The layer.
#[derive(Debug, Clone)]
pub struct Edge {
    gate: Gate,
    token: Option<Arc<Token>>,
    largest_request: usize,
    short: Arc<Semaphore>,
    stops: Arc<Semaphore>,
    long: Arc<Semaphore>,
}

/// A service behind the [`Edge`].
#[derive(Debug, Clone)]
pub struct Guarded<S> {
    edge: Edge,
    inner: S,
}

impl Edge {
    /// One for the whole server. Whoever comes over TCP shows the token; a request that has more
    /// bytes than the largest is not read.
    pub fn new(gate: Gate, token: Option<Token>, largest_request: usize) -> Self {
        Self {
            gate,
            token: token.map(Arc::new),
            largest_request,
            short: Arc::new(Semaphore::new(SHORT_CALLS)),
            stops: Arc::new(Semaphore::new(STOP_CALLS)),
            long: Arc::new(Semaphore::new(LONG_CALLS)),
        }
    }

    /// Who calls must be this user, or know the token.
    fn identify<B>(&self, request: &Request<B>) -> Result<(), Refusal> {
        match (request.extensions().get::<Peer>(), &self.token) {
            (Some(Peer::Local(info)), _) => check_user(info.peer_cred.map(|cred| cred.uid())),
            (Some(Peer::Remote(proof)), Some(token)) => {
                token.check(request.headers())?;
                proof.give();
                Ok(())
            }
            (Some(Peer::Remote(_)), None) | (None, _) => check_user(None),
        }
    }

    /// The answer as the caller gets it.
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
            let refusal = Refusal::not_serving("the server is starting or shutting down; try again");
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

/// The socket's mode keeps others out; this holds even where somebody has loosened it.
fn check_user(uid: Option<u32>) -> Result<(), Refusal> {
    match uid {
        Some(uid) if uid == own_uid() => Ok(()),
        Some(uid) => {
            let message = format!("this daemon belongs to another user than uid {uid}");
            Err(
                Refusal::new(Code::PermissionDenied, ErrorReason::ForeignUser, message)
                    .with("uid", uid),
            )
        }
        None => {
            let message = "the kernel does not say who calls";
            Err(Refusal::new(
                Code::PermissionDenied,
                ErrorReason::ForeignUser,
                message,
            ))
        }
    }
}

/// tonic's refusal of a message that is too large: our own have details.
fn is_too_large(headers: &HeaderMap) -> bool {
    let out_of_range = headers
        .get(Status::GRPC_STATUS)
        .is_some_and(|code| code == "11");
    out_of_range && !headers.contains_key(Status::GRPC_STATUS_DETAILS)
}

impl<S> Layer<S> for Edge {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded {
            edge: self.clone(),
            inner,
        }
    }
}

impl<S, B> Service<Request<B>> for Guarded<S>
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
        // The one that is ready is used now; its clone is for the next call.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let edge = self.edge.clone();
        let id = request_id(&request);
        let method = request.uri().path().to_owned();
        let caller = edge.identify(&request);
        // Nothing further in has any use for it.
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
                None => Status::deadline_exceeded("the caller's deadline has passed").into_http(),
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

/// The caller's own name for the call, or a new one.
fn request_id<B>(request: &Request<B>) -> HeaderValue {
    match request.headers().get(REQUEST_ID) {
        Some(given) if given.len() <= 128 => given.clone(),
        Some(_) | None => HeaderValue::try_from(uuid::Uuid::now_v7().to_string())
            .unwrap_or(HeaderValue::from_static("unnamed")),
    }
}
