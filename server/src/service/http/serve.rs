//! Connections of browsers and other HTTP clients.

use std::{convert::Infallible, io, time::Duration};

use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinSet,
};
use tokio_stream::{Stream, StreamExt};
use tonic::{body::Body, transport::server::Connected};

use super::{Front, backend::Backend};
use crate::service::{Closing, transport::pause};

/// The time in which the head of a request must arrive, and the longest pause between two requests.
const HEAD_LIMIT: Duration = Duration::from_secs(30);
/// The most calls at a time over one connection of HTTP/2.
const STREAMS: u32 = 256;
/// The memory that a connection of HTTP/1.1 has for a head that arrives, and for what its client does not read: no
/// share counts it. By default it is six times as much.
const HTTP1_BUFFER: usize = 64 << 10;

/// Serves connections until the server shuts down and their last calls have ended.
pub(crate) async fn serve<B, C>(
    connections: impl Stream<Item = io::Result<C>>,
    front: Front<B>,
    closing: Closing,
) where
    B: Backend,
    C: Connected + AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut connections = std::pin::pin!(connections);
    let mut serving = JoinSet::new();
    loop {
        tokio::select! {
            next = connections.next() => match next {
                Some(Ok(connection)) => {
                    serving.spawn(serve_one(connection, front.clone(), closing.clone()));
                }
                Some(Err(error)) => pause(&error).await,
                None => break,
            },
            Some(_) = serving.join_next() => {}
        }
    }
    while serving.join_next().await.is_some() {}
}

async fn serve_one<B, C>(connection: C, front: Front<B>, closing: Closing)
where
    B: Backend,
    C: Connected + AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let client = connection.connect_info();
    let answer = service_fn(move |request: http::Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(client.clone());
        let front = front.clone();
        async move { Ok::<_, Infallible>(front.answer(request).await) }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_buf_size(HTTP1_BUFFER);
    builder.http2().max_concurrent_streams(STREAMS);
    let serving = builder.serve_connection(TokioIo::new(connection), answer);
    let mut serving = std::pin::pin!(serving);
    let served = tokio::select! {
        served = serving.as_mut() => served,
        () = closing.begun() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "an HTTP connection ended");
    }
}
