//! The client of the bare server: the cost of a call or a stream without any work behind it.

use std::{
    path::PathBuf,
    process::{Child, Command},
    time::{Duration, Instant},
};

use http::uri::PathAndQuery;
use prost::bytes::Bytes;
use tokio_stream::Stream;
use tonic::{Request, Streaming, client::Grpc, transport::Channel};

use crate::{
    Result,
    bench::Bench,
    measured::{
        connection::{self, Raw},
        program,
    },
};

/// Maximum time until it listens.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// A process that serves bytes.
#[derive(Debug)]
pub(crate) struct BareServer {
    socket: PathBuf,
    child: Child,
}

impl BareServer {
    pub(crate) async fn start(bench: &Bench) -> Result<Self> {
        let socket = bench.directory()?.join("bare.sock");
        let child = Command::new(program::own()?)
            .args(["role", "server"])
            .arg(&socket)
            .spawn()?;
        let server = Self { socket, child };
        let until = Instant::now() + TIME_LIMIT;
        while server.channel().await.is_err() {
            if Instant::now() > until {
                return Err("the bare server does not listen".into());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(server)
    }

    /// Opens a connection.
    pub(crate) async fn channel(&self) -> Result<Channel> {
        connection::connect(&self.socket).await
    }
}

impl Drop for BareServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One call, in bytes; the path is that of the method.
pub(crate) async fn unary(channel: Channel, path: &'static str, message: Bytes) -> Result<Bytes> {
    let mut grpc = Grpc::new(channel).max_decoding_message_size(usize::MAX);
    grpc.ready().await?;
    let path = PathAndQuery::from_static(path);
    Ok(grpc
        .unary(Request::new(message), path, Raw)
        .await?
        .into_inner())
}

/// One stream, in bytes.
pub(crate) async fn stream(
    channel: Channel,
    path: &'static str,
    message: Bytes,
) -> Result<Streaming<Bytes>> {
    let mut grpc = Grpc::new(channel).max_decoding_message_size(usize::MAX);
    grpc.ready().await?;
    let path = PathAndQuery::from_static(path);
    Ok(grpc
        .server_streaming(Request::new(message), path, Raw)
        .await?
        .into_inner())
}

/// One stream in both directions, in bytes.
pub(crate) async fn duplex(
    channel: Channel,
    path: &'static str,
    messages: impl Stream<Item = Bytes> + Send + 'static,
) -> Result<Streaming<Bytes>> {
    let mut grpc = Grpc::new(channel);
    grpc.ready().await?;
    let path = PathAndQuery::from_static(path);
    let request = Request::new(messages);
    Ok(grpc.streaming(request, path, Raw).await?.into_inner())
}
