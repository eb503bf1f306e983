//! The layer in front of every call: it identifies the caller, refuses calls while the server is not
//! ready, limits their number, enforces the deadline and logs.

mod plain;

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
use http::{Extensions, HeaderMap, HeaderValue, Request, Response, header::AUTHORIZATION};
use http_body_util::BodyExt;
use tonic::{Code, Status, body::Body};
use tower::{Layer, Service};

use super::{
    connection::{Client, Peer},
    deadline, message_stream,
    meters::{CallMeters, OpenCall},
    methods::{self, Pool, Target},
    origin::Origin,
    pools::Pools,
    request_body,
    shares::{Caller, Share},
    token::Token,
};
use crate::{
    process::own_uid,
    service::{
        traces::{OpenSpan, Traces},
        wire::refusal::Refusal,
    },
    supervisor::{Caller as Found, Supervisor},
    task::{Authority, CallSpan, Rights},
};

pub(crate) use self::plain::Admitted;

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
    supervisor: Supervisor,
    meters: CallMeters,
    traces: Option<Traces>,
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
    pub(crate) fn new(
        gate: Gate,
        token: Option<Token>,
        largest_request: usize,
        supervisor: Supervisor,
        traces: Option<Traces>,
    ) -> Self {
        Self {
            supervisor,
            traces,
            gate,
            token: token.map(Arc::new),
            largest_request,
            pools: Pools::default(),
            meters: CallMeters::default(),
        }
    }

    /// The counts of its calls.
    pub(crate) fn meters(&self) -> &CallMeters {
        &self.meters
    }

    /// Accepts callers that run as the server's user or present the token.
    fn identify(
        &self,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Result<(Caller, Identity), Refusal> {
        let Some(client) = extensions.get::<Client>() else {
            return Err(unidentified());
        };
        let identity = match (&client.peer, &self.token) {
            (Peer::Local(info, origin), _) => {
                check_user(info.peer_cred.map(|cred| cred.uid()))?;
                // Whatever token it shows: the kernel's word counts.
                Identity::Process(origin.clone())
            }
            (Peer::Remote(authentication), Some(token)) => {
                let authority = self.check_token(token, headers)?;
                authentication.succeed();
                Identity::Known(authority)
            }
            (Peer::Remote(_), None) => return Err(unidentified()),
        };
        Ok((client.caller, identity))
    }

    /// Accepts the server's token, or that of a live task. Until recovery is done live tasks are not known, so a
    /// token that may be theirs is not refused for good.
    fn check_token(&self, token: &Token, headers: &HeaderMap) -> Result<Authority, Refusal> {
        let mut is_undecided = false;
        let task = |shown: &str| {
            let found = self.supervisor.task_with_token(shown);
            is_undecided = found.is_none() && !self.gate.is_open();
            found
        };
        match token.check(headers, task) {
            Err(_) if is_undecided => Err(not_open()),
            checked => checked,
        }
    }

    /// The rights of the caller of an RPC, which is refused while the server is not ready.
    async fn authorise_rpc(
        &self,
        identity: Identity,
        needed: Rights,
    ) -> Result<Authority, Refusal> {
        match self.gate.is_open() {
            true => self.authorise(identity, needed).await,
            false => Err(not_open()),
        }
    }

    /// The rights of a caller, which must be enough for the call.
    async fn authorise(&self, identity: Identity, needed: Rights) -> Result<Authority, Refusal> {
        let authority = match identity {
            Identity::Known(authority) => authority,
            Identity::Process(origin) => match origin.caller(&self.supervisor).await {
                Found::Outside => Authority::User,
                Found::Task(id) => self
                    .supervisor
                    .authority_of(&id)
                    .ok_or_else(unknown_caller)?,
                Found::Unknown => return Err(unknown_caller()),
            },
        };
        match &authority {
            Authority::Task { id, rights } if *rights < needed => {
                Err(Refusal::rights_insufficient(id, *rights, needed))
            }
            Authority::Task { .. } | Authority::User => Ok(authority),
        }
    }

    /// Begins to count a call, and its span if it is an RPC of the service and the server exports traces.
    fn begin(&self, path: &str, headers: &HeaderMap) -> (OpenCall, Option<CallSpan>) {
        let method = methods::name(path);
        let traces = self.traces.as_ref().filter(|_| methods::is_rpc(path));
        let span = traces.map(|traces| traces.begin(method, headers));
        let place = span.as_ref().map(OpenSpan::place);
        (self.meters.begin(method, span), place)
    }

    /// Begins to count a call whose caller is not identified. It has no span: its header could put one into any
    /// trace.
    fn begin_unidentified(&self, path: &str) -> OpenCall {
        self.meters.begin(methods::name(path), None)
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
        (caller, identity): (Caller, Identity),
        inner: S,
        mut request: Request<Body>,
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
            Target::Unknown if !self.gate.is_open() => Err(not_open().into()),
            Target::Rpc(pool, needed) => {
                let authority = self.authorise_rpc(identity, needed).await?;
                request.extensions_mut().insert(authority);
                match pool {
                    Pool::Duplex => self.serve_duplex(caller, inner, request).await,
                    Pool::Short | Pool::Start | Pool::Stop | Pool::Poll | Pool::Stream => {
                        self.serve_rpc(caller, pool, inner, request).await
                    }
                }
            }
            Target::Unknown => Err(Refusal::method_unknown(request.uri().path()).into()),
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
        let (requests, held) = (&self.pools.requests, parts.extensions.remove());
        let read = request_body::read(body, caller, requests, held, self.largest_request);
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
            (Ok(mut stream), Pool::Stream | Pool::Duplex) => {
                // For a layer that makes another, perhaps larger, form of its messages.
                stream.extensions_mut().insert(call);
                Ok(stream)
            }
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

/// The identity of a caller, as far as its connection and headers tell.
#[derive(Debug)]
enum Identity {
    /// The process that has connected.
    Process(Origin),
    Known(Authority),
}

fn not_open() -> Refusal {
    Refusal::not_serving("the server is starting or shutting down; try again")
}

/// Refuses a caller whose task cannot be told. It must not be taken for the user.
fn unknown_caller() -> Refusal {
    tracing::warn!("refused a call: the task that its process is inside of cannot be told");
    let message = "the server cannot tell which task the caller is inside of: its process has ended or is \
                   hidden, or its task is finished; connect from a process that stays, or over TCP";
    Refusal::new(Code::PermissionDenied, ErrorReason::CallerUnknown, message)
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
        let caller = edge.identify(request.headers(), request.extensions());
        // No handler needs the token.
        request.headers_mut().remove(AUTHORIZATION);
        let deadline = deadline::of(request.headers());
        let (open, span) = match &caller {
            Ok(_) => edge.begin(&method, request.headers()),
            Err(_) => (edge.begin_unidentified(&method), None),
        };
        if let Some(span) = span {
            request.extensions_mut().insert(span);
        }
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
            Ok(open.until_answered(response))
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
