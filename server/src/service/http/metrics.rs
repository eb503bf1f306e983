//! The metrics, for a Prometheus server.

use http::{
    HeaderValue, Method, Response, StatusCode,
    header::{ALLOW, CONTENT_TYPE},
    request::Parts,
};
use http_body_util::Full;
use tonic::{Status, body::Body};

use super::{answer, backend::Backend};
use crate::service::metrics;

/// The path of the metrics.
const PATH: &str = "/metrics";

/// The answer to a request for the metrics; `None` if the request is another one, or the backend has none.
pub(super) async fn answer(backend: &impl Backend, parts: &Parts) -> Option<Response<Body>> {
    if parts.uri.path() != PATH {
        return None;
    }
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        let status = Status::invalid_argument("the metrics are read by GET");
        let mut response = answer::refused_as(StatusCode::METHOD_NOT_ALLOWED, &status);
        let allowed = HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(ALLOW, allowed);
        return Some(response);
    }
    let text = match backend.metrics(parts).await? {
        Ok(text) => text,
        Err(status) => return Some(answer::refused(&status)),
    };
    let mut response = Response::new(match parts.method == Method::HEAD {
        true => Body::empty(),
        false => Body::new(Full::new(text)),
    });
    let content_type = HeaderValue::from_static(metrics::CONTENT_TYPE);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    Some(response)
}
