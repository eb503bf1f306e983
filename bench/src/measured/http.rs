//! Calls by JSON over HTTP, each client on a connection that stays open.

use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use prost::bytes::Bytes;
use tokio::net::TcpStream;

use crate::Result;

/// An address and its token.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    host: String,
    authorization: String,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    http: Http,
}

impl Http {
    pub(crate) fn new(host: String, token: &str) -> Self {
        Self {
            host,
            authorization: format!("Bearer {token}"),
        }
    }

    /// Opens a connection.
    pub(crate) async fn connect(&self) -> Result<Connection> {
        let stream = TcpStream::connect(&self.host).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        // It ends when the sender is dropped.
        tokio::spawn(connection);
        let http = self.clone();
        Ok(Connection { sender, http })
    }
}

impl Connection {
    /// One call; the path is that of the method.
    pub(crate) async fn call(&mut self, path: &str, json: &'static str) -> Result<Bytes> {
        let request = Request::post(path)
            .header(header::HOST, &self.http.host)
            .header(header::AUTHORIZATION, &self.http.authorization)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from_static(json.as_bytes())))?;
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        match status {
            StatusCode::OK => Ok(body),
            _ => Err(format!("{status}: {}", String::from_utf8_lossy(&body)).into()),
        }
    }
}
