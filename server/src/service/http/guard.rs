//! The requests that an HTTP address answers: those for its own names, from its own page, from programs, and
//! from pages of allowed origins.
//!
//! A page of another site can let a browser send requests to this machine, by its address or by a name of the
//! site that resolves to it (DNS rebinding). The browser then names the site in `Origin` or in `Host`.

use std::net::SocketAddr;

use heeler_proto::v1::ErrorReason;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD,
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, ORIGIN, REFERRER_POLICY, VARY,
        X_CONTENT_TYPE_OPTIONS,
    },
    request::Parts,
};
use tonic::{Code, Status, body::Body};

use crate::service::wire::refusal::Refusal;

/// The page loads nothing from elsewhere, runs no inline script, and is shown in no frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'";

/// The request headers of a call.
const CALL_HEADERS: &str = "authorization, content-type, connect-protocol-version, connect-timeout-ms, traceparent, \
     x-request-id, x-user-agent";

/// The names of an HTTP address, and the origins whose pages may use it.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    scheme: &'static str,
    /// With the port.
    own: Vec<String>,
    /// Configured names, with a port or for any.
    names: Vec<String>,
    origins: Vec<String>,
}

/// The origin of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    /// The own page, or a program.
    Own,
    /// An allowed origin.
    Allowed(HeaderValue),
}

impl Guard {
    pub(crate) fn new(
        scheme: &'static str,
        address: SocketAddr,
        names: &[String],
        origins: &[String],
    ) -> Self {
        let port = address.port();
        let mut own = vec![
            format!("localhost:{port}"),
            format!("127.0.0.1:{port}"),
            format!("[::1]:{port}"),
        ];
        if !address.ip().is_unspecified() {
            own.push(address.to_string());
        }
        let default_port = match scheme {
            "https" => 443,
            _ => 80,
        };
        if port == default_port {
            let suffix = format!(":{port}");
            let bare = own.iter().filter_map(|name| name.strip_suffix(&suffix));
            let bare: Vec<String> = bare.map(str::to_owned).collect();
            own.extend(bare);
        }
        let lower = |texts: &[String]| texts.iter().map(|text| text.to_lowercase()).collect();
        Self {
            scheme,
            own,
            names: lower(names),
            origins: lower(origins),
        }
    }

    /// Accepts a request by its host and its origin.
    pub(super) fn check(&self, parts: &Parts) -> Result<Origin, Status> {
        let host = host(parts)?;
        if !self.is_own(&host) {
            let (shown, own) = (Refusal::shown(&host), &self.own[0]);
            return Err(refused(format!(
                "the host {shown} is not a name of this server: use {own}, or allow the name with --http-host"
            )));
        }
        let Some(given) = single(&parts.headers, &ORIGIN)? else {
            return Ok(Origin::Own);
        };
        let origin = given.to_str().unwrap_or_default().to_lowercase();
        if origin == format!("{}://{host}", self.scheme) {
            return Ok(Origin::Own);
        }
        match self.origins.contains(&origin) {
            true => Ok(Origin::Allowed(given.clone())),
            false => Err(refused(format!(
                "pages of the origin {} may not use this server: allow it with --http-origin",
                Refusal::shown(&origin)
            ))),
        }
    }

    fn is_own(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            Some(_) | None => host,
        };
        self.own.iter().any(|own| own == host)
            || self.names.iter().any(|own| own == host || own == name)
    }
}

/// The answer to a browser that asks whether a page may call.
pub(super) fn preflight(parts: &Parts, origin: &Origin) -> Option<Response<Body>> {
    if parts.method != Method::OPTIONS {
        return None;
    }
    let asks = parts.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = Response::new(Body::empty());
    match (origin, asks) {
        (Origin::Allowed(_), true) => {
            *response.status_mut() = StatusCode::NO_CONTENT;
            for (name, value) in [
                (ACCESS_CONTROL_ALLOW_METHODS, "POST"),
                (ACCESS_CONTROL_ALLOW_HEADERS, CALL_HEADERS),
                (ACCESS_CONTROL_MAX_AGE, "600"),
            ] {
                response
                    .headers_mut()
                    .insert(name, HeaderValue::from_static(value));
            }
        }
        (Origin::Own | Origin::Allowed(_), _) => {
            *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        }
    }
    Some(response)
}

/// Adds the headers that every response has.
pub(super) fn protect(response: &mut Response<Body>, origin: Option<Origin>) {
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (VARY, "origin, accept-encoding"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let resource_policy = HeaderName::from_static("cross-origin-resource-policy");
    match origin {
        Some(Origin::Allowed(origin)) => {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            let exposed = HeaderValue::from_static("x-request-id, heeler-access");
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
            headers.insert(resource_policy, HeaderValue::from_static("cross-origin"));
        }
        Some(Origin::Own) | None => {
            headers.insert(resource_policy, HeaderValue::from_static("same-origin"));
        }
    }
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}

/// The host that a request names, in lower case.
fn host(parts: &Parts) -> Result<String, Status> {
    let header = single(&parts.headers, &HOST)?
        .map(|value| value.to_str().unwrap_or_default().to_lowercase());
    let authority = parts.uri.authority().map(|one| one.as_str().to_lowercase());
    match (authority, header) {
        (Some(authority), Some(header)) if authority != header => {
            Err(refused("the request names two hosts".to_owned()))
        }
        (Some(host), _) | (None, Some(host)) => Ok(host),
        (None, None) => Err(refused("the request names no host".to_owned())),
    }
}

fn single<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a HeaderValue>, Status> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    match values.next() {
        Some(_) => Err(refused(format!("the request has two headers {name}"))),
        None => Ok(first),
    }
}

fn refused(message: String) -> Status {
    let reason = ErrorReason::OriginRefused;
    Refusal::new(Code::PermissionDenied, reason, message).into()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use http::Request;

    use super::*;

    fn check(names: &[&str], origins: &[&str], headers: &[(&str, &str)]) -> Result<Origin, Status> {
        let owned = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| (*text).to_owned())
                .collect::<Vec<_>>()
        };
        let address = "127.0.0.1:7118".parse().unwrap();
        let guard = Guard::new("http", address, &owned(names), &owned(origins));
        let request = headers
            .iter()
            .fold(Request::builder(), |request, (name, value)| {
                request.header(*name, *value)
            });
        guard.check(&request.body(()).unwrap().into_parts().0)
    }

    /// H2
    #[test]
    fn only_the_servers_own_names_with_its_port_are_accepted() {
        for host in [
            "localhost:7118",
            "127.0.0.1:7118",
            "[::1]:7118",
            "LOCALHOST:7118",
        ] {
            assert_eq!(
                check(&[], &[], &[("host", host)]).unwrap(),
                Origin::Own,
                "{host}"
            );
        }
        for host in [
            "evil.example:7118",
            "localhost",
            "localhost:80",
            "localhost.evil.example:7118",
            "127.0.0.1.evil.example:7118",
            "evil.example@localhost:7118",
            "",
        ] {
            let status = check(&[], &[], &[("host", host)]).unwrap_err();
            assert_eq!(status.code(), Code::PermissionDenied, "{host}");
        }
        assert!(check(&[], &[], &[]).is_err());
        let two = [("host", "localhost:7118"), ("host", "localhost:7118")];
        assert!(check(&[], &[], &two).is_err());
    }

    /// H2
    #[test]
    fn a_configured_name_is_accepted_with_its_port_or_with_any() {
        for host in [
            "build.example",
            "build.example:1",
            "Build.Example:7118",
            "tunnel:8080",
        ] {
            let names = ["build.example", "tunnel:8080"];
            assert!(check(&names, &[], &[("host", host)]).is_ok(), "{host}");
        }
        for host in [
            "tunnel",
            "tunnel:1",
            "a.build.example",
            "build.example.evil",
        ] {
            let names = ["build.example", "tunnel:8080"];
            assert!(check(&names, &[], &[("host", host)]).is_err(), "{host}");
        }
    }

    /// H2
    #[test]
    fn a_page_of_another_origin_is_refused_unless_it_is_allowed() {
        let from = |origin: &str| {
            let headers = [("host", "localhost:7118"), ("origin", origin)];
            check(&[], &["https://ide.example"], &headers)
        };
        assert_eq!(from("http://localhost:7118").unwrap(), Origin::Own);
        let allowed = HeaderValue::from_static("https://ide.example");
        assert_eq!(
            from("https://ide.example").unwrap(),
            Origin::Allowed(allowed)
        );
        for origin in [
            "null",
            "",
            "http://127.0.0.1:7118",
            "https://localhost:7118",
            "http://localhost:7119",
            "http://evil.example",
            "https://ide.example.evil",
        ] {
            assert!(from(origin).is_err(), "{origin}");
        }
    }
}
