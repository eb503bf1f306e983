//! Calls without a gRPC library: the server's own answers, unaltered by a client's deadlines and limits,
//! and clients that begin a call and do not go on.

use std::path::Path;

use h2::{
    RecvStream, SendStream,
    client::{Builder, ResponseFuture, SendRequest},
};
use http::{HeaderMap, Request, Response};
use prost::{Message, bytes::Bytes};
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
    task::JoinHandle,
};
use tonic::Status;

use crate::{daemon::SERVICE, http1::Http};

/// The window of a client that reads everything.
pub const WIDE: u32 = 1 << 30;

/// One connection, with calls of which a test sends and reads as much as it likes.
#[derive(Debug)]
pub struct Connection {
    client: SendRequest<Bytes>,
    driver: JoinHandle<Result<(), h2::Error>>,
}

impl Connection {
    /// Connects. The client accepts this many bytes of each answer.
    pub async fn open(socket: &Path, window: u32) -> Self {
        Self::over(UnixStream::connect(socket).await.unwrap(), window).await
    }

    /// Connects to an HTTP address, for calls in JSON.
    pub async fn to_http(http: &Http) -> Self {
        Self::over(TcpStream::connect(&http.host).await.unwrap(), WIDE).await
    }

    async fn over<S>(stream: S, window: u32) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut builder = Builder::new();
        builder.initial_window_size(window);
        builder.initial_connection_window_size(WIDE);
        let (client, connection) = builder.handshake(stream).await.unwrap();
        Self {
            client,
            driver: tokio::spawn(connection),
        }
    }

    /// Begins a call in JSON with these headers beside the usual ones, and sends no body.
    pub async fn begin_json(
        &mut self,
        http: &Http,
        method: &str,
        headers: &[(&str, &str)],
    ) -> (ResponseFuture, SendStream<Bytes>) {
        let mut request = Request::post(format!("http://{}/{SERVICE}/{method}", http.host))
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {}", http.token));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut client = self.client.clone().ready().await.unwrap();
        client
            .send_request(request.body(()).unwrap(), false)
            .unwrap()
    }

    /// Sends a whole request in JSON, without its length.
    pub async fn send_json(&mut self, http: &Http, method: &str, json: String) -> ResponseFuture {
        let (answer, mut body) = self.begin_json(http, method, &[]).await;
        body.send_data(json.into(), true).unwrap();
        answer
    }

    /// Begins a call, and sends no body.
    pub async fn begin(&mut self, method: &str) -> (ResponseFuture, SendStream<Bytes>) {
        self.begin_with(method, &[]).await
    }

    async fn begin_with(
        &mut self,
        method: &str,
        headers: &[(&str, &str)],
    ) -> (ResponseFuture, SendStream<Bytes>) {
        self.begin_at(&format!("{SERVICE}/{method}"), headers).await
    }

    async fn begin_at(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
    ) -> (ResponseFuture, SendStream<Bytes>) {
        let mut request = Request::post(format!("http://localhost/{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut client = self.client.clone().ready().await.unwrap();
        client
            .send_request(request.body(()).unwrap(), false)
            .unwrap()
    }

    /// Sends a whole request.
    pub async fn send(&mut self, method: &str, message: &impl Message) -> ResponseFuture {
        let (answer, mut body) = self.begin(method).await;
        body.send_data(framed(&message.encode_to_vec()), true)
            .unwrap();
        answer
    }

    /// Sends a whole request to another service.
    pub async fn send_to(&mut self, path: &str, message: &impl Message) -> ResponseFuture {
        let (answer, mut body) = self.begin_at(path, &[]).await;
        body.send_data(framed(&message.encode_to_vec()), true)
            .unwrap();
        answer
    }

    /// Sends these bytes as the message of a request, and returns the answer's status.
    pub async fn send_bytes(&mut self, method: &str, message: &[u8]) -> Status {
        self.send_framed(method, framed(message)).await
    }

    /// Sends a message whose prefix announces this many bytes, and returns the answer's status.
    pub async fn send_announced(&mut self, method: &str, size: u32, message: &[u8]) -> Status {
        let bytes = [&[0][..], &size.to_be_bytes(), message].concat();
        self.send_framed(method, bytes.into()).await
    }

    async fn send_framed(&mut self, method: &str, bytes: Bytes) -> Status {
        let (answer, mut body) = self.begin(method).await;
        body.send_data(bytes, true).unwrap();
        status(answer.await.unwrap()).await
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Makes a unary call, and returns the headers and trailers of the answer.
pub async fn call(
    socket: &Path,
    method: &str,
    message: &impl Message,
    headers: &[(&str, &str)],
) -> HeaderMap {
    let mut connection = Connection::open(socket, WIDE).await;
    let (answer, mut body) = connection.begin_with(method, headers).await;
    body.send_data(framed(&message.encode_to_vec()), true)
        .unwrap();
    all_headers(answer.await.unwrap()).await
}

/// The body of an answer in JSON.
pub async fn json(answer: Response<RecvStream>) -> Value {
    let mut body = answer.into_body();
    let mut text = Vec::new();
    while let Some(data) = body.data().await {
        let data = data.unwrap();
        body.flow_control().release_capacity(data.len()).unwrap();
        text.extend_from_slice(&data);
    }
    serde_json::from_slice(&text).expect("JSON")
}

/// The status of an answer.
pub async fn status(answer: Response<RecvStream>) -> Status {
    let headers = all_headers(answer).await;
    Status::from_header_map(&headers).expect("a status")
}

async fn all_headers(answer: Response<RecvStream>) -> HeaderMap {
    let mut all = answer.headers().clone();
    let mut body = answer.into_body();
    while let Some(data) = body.data().await {
        let read = data.unwrap().len();
        body.flow_control().release_capacity(read).unwrap();
    }
    all.extend(body.trailers().await.unwrap().unwrap_or_default());
    all
}

fn framed(message: &[u8]) -> Bytes {
    let mut framed = vec![0];
    framed.extend_from_slice(&u32::try_from(message.len()).unwrap().to_be_bytes());
    framed.extend_from_slice(message);
    framed.into()
}

/// Calls on one connection whose requests have no end, until it is dropped.
#[derive(Debug)]
pub struct HalfOpen {
    connection: JoinHandle<()>,
    _calls: Vec<(ResponseFuture, SendStream<Bytes>)>,
}

impl HalfOpen {
    /// Opens this many calls, or as many as the server lets it; `None` if the server is not there.
    pub async fn calls(socket: &Path, method: &str, count: usize) -> Option<Self> {
        let stream = UnixStream::connect(socket).await.ok()?;
        let (mut client, connection) = h2::client::handshake(stream).await.ok()?;
        let connection = tokio::spawn(async move { drop(connection.await) });
        let mut calls = Vec::new();
        for _ in 0..count {
            let Ok(ready) = client.ready().await else {
                break;
            };
            client = ready;
            let request = Request::post(format!("http://localhost/{SERVICE}/{method}"))
                .header("content-type", "application/grpc")
                .header("te", "trailers")
                .body(())
                .unwrap();
            calls.extend(client.send_request(request, false).ok());
        }
        Some(Self {
            connection,
            _calls: calls,
        })
    }
}

impl Drop for HalfOpen {
    fn drop(&mut self) {
        self.connection.abort();
    }
}
