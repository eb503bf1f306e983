//! Connections to a server on a Unix socket, and a codec that passes bytes through.

use std::path::Path;

use heeler_proto::v1::background_tasks_client::BackgroundTasksClient;
use hyper_util::rt::TokioIo;
use prost::bytes::{Buf, BufMut, Bytes};
use tokio::net::UnixStream;
use tonic::{
    Status,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    transport::{Channel, Endpoint, Uri},
};
use tower::service_fn;

use crate::Result;

/// The generated stub.
pub(crate) type Stub = BackgroundTasksClient<Channel>;

/// Opens a connection.
pub(crate) async fn connect(socket: &Path) -> Result<Channel> {
    let socket = socket.to_owned();
    let connector = service_fn(move |_: Uri| {
        let socket = socket.clone();
        async move { Ok::<_, std::io::Error>(TokioIo::new(UnixStream::connect(socket).await?)) }
    });
    // HTTP/2 requires an authority; the connector ignores it.
    let endpoint = Endpoint::from_static("http://localhost");
    Ok(endpoint.connect_with_connector(connector).await?)
}

/// Opens a connection to the service.
pub(crate) async fn stub(socket: &Path) -> Result<Stub> {
    Ok(Stub::new(connect(socket).await?).max_decoding_message_size(usize::MAX))
}

/// Passes messages through as bytes, so that the server is measured and not the client's decoding.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, to: &mut EncodeBuf<'_>) -> std::result::Result<(), Status> {
        to.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> std::result::Result<Option<Bytes>, Status> {
        let whole = from.remaining();
        Ok(Some(from.copy_to_bytes(whole)))
    }
}
