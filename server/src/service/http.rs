//! JSON over HTTP: every RPC by the Connect protocol, the page, and the metrics.
//!
//! ```text
//! HTTP ──> guard ──┬─> page
//!                  └─> call ──> json ──> gRPC service: the server's own, or a daemon's
//! browser <── JSON <── answer <───────────┘
//! ```
//!
//! A call is translated into the gRPC call that it stands for, by the descriptors of the contract, and made
//! through the same layers as any other. So the same checks, shares and rights apply, and a new RPC needs no
//! line here.

mod answer;
mod backend;
mod contract;
mod error;
mod frames;
mod guard;
mod json;
mod metrics;
mod page;
mod proxy;
mod serve;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use heeler_proto::v1::{self, ErrorReason};
use http::{
    HeaderMap, HeaderValue, Method as HttpMethod, Request, Response, StatusCode, Version,
    header::{ALLOW, CONTENT_ENCODING, CONTENT_TYPE, TE},
    request::Parts,
};
use http_body_util::Full;
use prost::{Message as _, bytes::Bytes};
use tonic::{Code, Status, body::Body};

pub(super) use self::json::EventWriter;
pub use self::proxy::{Dashboard, DashboardError};
use self::{
    backend::Backend,
    contract::{Contract, Form, Method},
    guard::preflight,
};
pub(crate) use self::{backend::InProcess, guard::Guard, serve::serve};
use crate::{
    config::HttpAccess,
    service::{
        LARGEST_REQUEST, NAME, Reader,
        transport::{Effect, RequestMemory},
        wire::refusal::Refusal,
    },
};

/// Tells a page that calls that change something are refused.
const ACCESS: http::HeaderName = http::HeaderName::from_static("heeler-access");
const ACCEPT_POST: http::HeaderName = http::HeaderName::from_static("accept-post");
/// The largest request in JSON, in which bytes take a third more.
const LARGEST_JSON: usize = LARGEST_REQUEST / 3 * 4;
/// The most digits of a timeout in milliseconds, by the Connect protocol.
const TIMEOUT_DIGITS: usize = 10;

/// Answers HTTP requests.
#[derive(Debug, Clone)]
pub(crate) struct Front<B> {
    backend: B,
    guard: Arc<Guard>,
    access: HttpAccess,
    contract: Arc<Contract>,
}

impl<B: Backend> Front<B> {
    pub(crate) fn new(backend: B, guard: Guard, access: HttpAccess) -> Self {
        Self {
            backend,
            guard: Arc::new(guard),
            access,
            contract: Arc::new(Contract::new()),
        }
    }

    /// Answers a request.
    pub(crate) async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let (mut response, origin) = match self.guard.check(&parts) {
            Err(status) => (answer::refused(&status), None),
            Ok(origin) => {
                let answered = match preflight(&parts, &origin) {
                    Some(preflight) => preflight,
                    None => self.route(parts, body).await,
                };
                (answered, Some(origin))
            }
        };
        guard::protect(&mut response, origin);
        match self.access {
            HttpAccess::All => {}
            HttpAccess::ReadOnly => {
                let access = HeaderValue::from_static("read-only");
                response.headers_mut().insert(ACCESS, access);
            }
        }
        response
    }

    async fn route(&self, parts: Parts, body: Body) -> Response<Body> {
        let path = parts.uri.path();
        if let Some(method) = self.contract.method(path) {
            return match self.call(method, parts, body).await {
                Ok(response) => response,
                Err(refused) => refused.response(method.form),
            };
        }
        if let Some(page) = page::answer(&parts) {
            return page;
        }
        if let Some(metrics) = metrics::answer(&self.backend, &parts).await {
            return metrics;
        }
        let refusal = match path.trim_start_matches('/').starts_with(NAME) {
            true => Refusal::method_unknown(path),
            false => {
                let shown = Refusal::shown(path);
                let message = format!("there is nothing at {shown}: calls are at /{NAME}/METHOD");
                Refusal::new(Code::Unimplemented, ErrorReason::MethodUnknown, message)
            }
        };
        answer::refused_as(StatusCode::NOT_FOUND, &refusal.into())
    }

    /// Makes a call.
    async fn call(
        &self,
        method: &Method,
        parts: Parts,
        body: Body,
    ) -> Result<Response<Body>, Refused> {
        let arrived = Instant::now();
        check_form(method, &parts)?;
        let admitted = self.backend.admit(&parts).await?;
        self.check_access(method)?;
        let allowed = timeout(&parts.headers)?;
        let reading = self.read(method, &admitted, body);
        let (message, memory) = match allowed {
            Some(allowed) => tokio::time::timeout(allowed, reading)
                .await
                .unwrap_or_else(|_| Err(too_late()))?,
            None => reading.await?,
        };
        // From here on the call counts by itself.
        drop(admitted);
        let left = allowed.map(|allowed| allowed.saturating_sub(arrived.elapsed()));
        let mut request = grpc_request(method, parts, left, &message);
        let extensions = request.extensions_mut();
        if let Some(memory) = memory {
            extensions.insert(memory);
        }
        extensions.insert(match self.access {
            HttpAccess::All => Reader::Client,
            HttpAccess::ReadOnly => Reader::Observer,
        });
        let response = self.backend.call(request).await?;
        Ok(answer::transform(method, response).await)
    }

    /// Reads a request and encodes it. The memory is that of the message.
    async fn read(
        &self,
        method: &Method,
        admitted: &B::Admitted,
        body: Body,
    ) -> Result<(Bytes, Option<RequestMemory>), Status> {
        let (body, share) = self.backend.read(admitted, body, LARGEST_JSON).await?;
        let json = match method.form {
            Form::Unary => body,
            Form::Stream | Form::Duplex => frames::only(body)?,
        };
        let message = json::encode(&method.input, &json)?;
        self.check_ownership(method, &message)?;
        let memory = share.map(|mut share| {
            share.resize(message.len());
            RequestMemory::new(share)
        });
        Ok((message, memory))
    }

    fn check_access(&self, method: &Method) -> Result<(), Status> {
        match (self.access, method.effect) {
            (HttpAccess::All, _) | (HttpAccess::ReadOnly, Effect::Reads) => Ok(()),
            (HttpAccess::ReadOnly, Effect::Changes) => Err(read_only(&method.name)),
        }
    }

    /// A watch changes nothing, unless it owns a session: its end then stops tasks.
    fn check_ownership(&self, method: &Method, message: &[u8]) -> Result<(), Status> {
        match self.access {
            HttpAccess::All => Ok(()),
            HttpAccess::ReadOnly if method.name != "WatchEvents" => Ok(()),
            HttpAccess::ReadOnly => match v1::WatchEventsRequest::decode(message) {
                Ok(request) if request.own_session.is_none() => Ok(()),
                Ok(_) | Err(_) => Err(read_only("own_session")),
            },
        }
    }
}

fn too_late() -> Status {
    Status::deadline_exceeded("the deadline of the call has passed")
}

fn read_only(refused: &str) -> Status {
    let message = format!("this address is read-only, and {refused} is not");
    Refusal::new(Code::PermissionDenied, ErrorReason::ReadOnly, message).into()
}

/// The reason why a call was not made.
enum Refused {
    /// In the form of the method's answers.
    Call(Status),
    /// Before that form is agreed, with what would be accepted instead.
    Http(StatusCode, Status, &'static str),
}

impl From<Status> for Refused {
    fn from(status: Status) -> Self {
        Self::Call(status)
    }
}

impl Refused {
    fn response(self, form: Form) -> Response<Body> {
        match self {
            Self::Call(status) => answer::refusal(form, &status),
            Self::Http(code, status, allowed) => {
                let mut response = answer::refused_as(code, &status);
                let name = match code {
                    StatusCode::METHOD_NOT_ALLOWED => ALLOW,
                    _ => ACCEPT_POST,
                };
                let allowed = HeaderValue::from_static(allowed);
                response.headers_mut().insert(name, allowed);
                response
            }
        }
    }
}

/// Accepts a request in the form that its method has in the Connect protocol.
fn check_form(method: &Method, parts: &Parts) -> Result<(), Refused> {
    let name = &method.name;
    let expected = match method.form {
        Form::Unary => "application/json",
        Form::Stream => "application/connect+json",
        Form::Duplex => {
            let message = format!("{name} has messages in both directions: call it by gRPC");
            let refusal = Refusal::new(Code::Unimplemented, ErrorReason::MethodUnknown, message)
                .with("method", name);
            return Err(Refused::Call(refusal.into()));
        }
    };
    let unreadable = |message: String| -> Status {
        let reason = ErrorReason::RequestUnreadable;
        Refusal::new(Code::InvalidArgument, reason, message).into()
    };
    if parts.method != HttpMethod::POST {
        let status = unreadable(format!("{name} is called by POST"));
        let code = StatusCode::METHOD_NOT_ALLOWED;
        return Err(Refused::Http(code, status, "POST"));
    }
    let text = |header| {
        let value = parts.headers.get(header).map(HeaderValue::to_str);
        value.and_then(Result::ok).unwrap_or_default()
    };
    let given = text(CONTENT_TYPE).split(';').next().unwrap_or_default();
    if !given.trim().eq_ignore_ascii_case(expected) {
        let message = format!("{name} takes `content-type: {expected}`");
        let code = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(Refused::Http(code, unreadable(message), expected));
    }
    let encodings = [
        text(CONTENT_ENCODING),
        text(http::HeaderName::from_static("connect-content-encoding")),
    ];
    match encodings.iter().all(|one| matches!(*one, "" | "identity")) {
        true => Ok(()),
        false => {
            let message = "a request must not be compressed";
            let reason = ErrorReason::RequestUnreadable;
            let refusal = Refusal::new(Code::Unimplemented, reason, message);
            Err(Refused::Call(refusal.into()))
        }
    }
}

/// The timeout of a call.
fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, Status> {
    let version = headers.get("connect-protocol-version");
    if version.is_some_and(|version| version != "1") {
        return Err(Refusal::field("connect-protocol-version", "must be 1").into());
    }
    let Some(given) = headers.get("connect-timeout-ms") else {
        return Ok(None);
    };
    let digits = given.to_str().unwrap_or_default();
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    match digits.parse() {
        Ok(millis) if is_number && digits.len() <= TIMEOUT_DIGITS => {
            Ok(Some(Duration::from_millis(millis)))
        }
        Ok(_) | Err(_) => Err(Refusal::field(
            "connect-timeout-ms",
            "must be a number of at most 10 digits",
        )
        .into()),
    }
}

/// A timeout as gRPC writes it: at most eight digits and a unit.
fn grpc_timeout(timeout: Duration) -> Option<HeaderValue> {
    let text = match timeout.as_millis() {
        millis @ 0..100_000_000 => format!("{millis}m"),
        millis => format!("{}S", millis / 1000),
    };
    HeaderValue::try_from(text).ok()
}

/// The gRPC call that a request stands for.
fn grpc_request(
    method: &Method,
    mut parts: Parts,
    timeout: Option<Duration>,
    message: &[u8],
) -> Request<Body> {
    parts.version = Version::HTTP_2;
    parts.uri = http::Uri::try_from(method.path()).unwrap_or_default();
    let kept = [
        http::header::AUTHORIZATION,
        http::HeaderName::from_static("x-request-id"),
        http::HeaderName::from_static("traceparent"),
    ];
    let mut headers = HeaderMap::new();
    for name in kept {
        if let Some(value) = parts.headers.get(&name) {
            headers.insert(name, value.clone());
        }
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(TE, HeaderValue::from_static("trailers"));
    if let Some(timeout) = timeout.and_then(grpc_timeout) {
        headers.insert("grpc-timeout", timeout);
    }
    parts.headers = headers;
    let body: Bytes = frames::framed(message);
    Request::from_parts(parts, Body::new(Full::new(body)))
}
