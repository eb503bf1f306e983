//! A daemon's HTTP address, and requests to it that say exactly what a test wants.

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::{Bytes, Incoming},
    client::conn::http1::handshake,
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::{
    Daemon,
    daemon::{Builder, SERVICE},
    eventually_some, within,
};

impl Builder {
    /// Listens for HTTP on a free port of loopback.
    pub fn http(self) -> Self {
        self.arg("--http").arg("127.0.0.1:0")
    }
}

impl Daemon {
    /// The HTTP address that it has logged, and its token.
    pub async fn http(&self) -> Http {
        let host = eventually_some("an HTTP address", || {
            let log = self.log();
            let (_, host) = log.rsplit_once("listening on http://")?;
            host.lines().next().map(str::to_owned)
        })
        .await;
        Http::new(&host, &self.token())
    }
}

/// An HTTP address and its token.
#[derive(Debug, Clone)]
pub struct Http {
    /// Host and port.
    pub host: String,
    pub token: String,
}

/// A response whose body has been read.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The code and the reason of an error.
    pub fn error(&self) -> (String, String) {
        error(&self.json())
    }
}

/// The code and the reason of an error.
pub fn error(json: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let reason = &json["details"][0]["debug"]["reason"];
    (text(&json["code"]), text(reason))
}

impl Http {
    pub fn new(host: &str, token: &str) -> Self {
        Self {
            host: host.to_owned(),
            token: token.to_owned(),
        }
    }

    /// A request with the usual headers of a call, to be changed before it is sent.
    pub fn request(&self, method: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
        Request::post(format!("/{SERVICE}/{method}"))
            .header("host", &self.host)
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {}", self.token))
            .body(Full::new(body.into()))
            .unwrap()
    }

    /// Sends a request over a connection of its own, and returns the head of the response.
    pub async fn begin(&self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        let stream = TcpStream::connect(&self.host).await.expect("an address");
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        // It ends with the response.
        tokio::spawn(connection);
        let sent = within("a response", sender.send_request(request)).await;
        sent.expect("a response")
    }

    pub async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        let (parts, body) = self.begin(request).await.into_parts();
        let body = within("a whole response", body.collect()).await;
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: body.expect("a body").to_bytes(),
        }
    }

    /// Makes a unary call that succeeds.
    pub async fn call(&self, method: &str, json: &str) -> Value {
        let answer = self.send(self.request(method, json.to_owned())).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.json());
        answer.json()
    }

    /// Gets a file of the page, or the metrics.
    pub async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = self.request("", "");
        *request.method_mut() = Method::GET;
        *request.uri_mut() = path.parse().unwrap();
        for (name, value) in headers {
            let name = http::HeaderName::try_from(*name).unwrap();
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        self.send(request).await
    }

    /// Begins a streaming call.
    pub async fn stream(&self, method: &str, json: &str) -> Frames {
        self.stream_with(method, json, []).await
    }

    /// Begins a streaming call with these headers beside the usual ones.
    pub async fn stream_with<const N: usize>(
        &self,
        method: &str,
        json: &str,
        headers: [(&'static str, HeaderValue); N],
    ) -> Frames {
        let mut framed = vec![0];
        framed.extend_from_slice(&(json.len() as u32).to_be_bytes());
        framed.extend_from_slice(json.as_bytes());
        let mut request = self.request(method, framed);
        let streaming = "application/connect+json".parse().unwrap();
        request.headers_mut().insert("content-type", streaming);
        for (name, value) in headers {
            request.headers_mut().insert(name, value);
        }
        let response = self.begin(request).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(
            response.headers()["content-type"],
            "application/connect+json"
        );
        Frames {
            body: response.into_body(),
            arrived: Vec::new(),
        }
    }
}

/// The frames of a streaming answer.
#[derive(Debug)]
pub struct Frames {
    body: Incoming,
    arrived: Vec<u8>,
}

impl Frames {
    /// The next frame: its flag and its content; `None` at the end of the body.
    pub async fn next(&mut self) -> Option<(u8, Value)> {
        loop {
            if let Some([flag, length @ ..]) = self.arrived.first_chunk::<5>() {
                let (flag, end) = (*flag, 5 + u32::from_be_bytes(*length) as usize);
                if self.arrived.len() >= end {
                    let json = serde_json::from_slice(&self.arrived[5..end]).unwrap();
                    self.arrived.drain(..end);
                    return Some((flag, json));
                }
            }
            let frame = within("a frame", self.body.frame()).await?;
            let data = frame.expect("a frame").into_data().expect("data");
            self.arrived.extend_from_slice(&data);
        }
    }

    /// The frames until one satisfies the condition, that one included.
    pub async fn until(&mut self, found: impl Fn(u8, &Value) -> bool) -> Vec<(u8, Value)> {
        let mut seen = Vec::new();
        loop {
            let (flag, json) = self.next().await.expect("more frames");
            let is_last = found(flag, &json);
            seen.push((flag, json));
            if is_last {
                return seen;
            }
        }
    }
}
