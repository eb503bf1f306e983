//! The floor of a call and of a stream: a tonic server that only sends bytes that it was given.
//!
//! | method | effect |
//! | --- | --- |
//! | Put | keeps the message |
//! | Get | answers with it |
//! | Stream | sends an empty message, then, at every Go, the kept message that many times |
//! | Go | takes the number, as text |
//! | Sink | a stream in both directions: an empty message for each that arrives |

use std::{
    convert::Infallible,
    future::Future,
    path::Path,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use prost::bytes::Bytes;
use tokio::{net::UnixListener, runtime, sync::watch};
use tokio_stream::{
    Stream, StreamExt,
    wrappers::{UnixListenerStream, WatchStream},
};
use tonic::{
    Request, Response, Status, Streaming,
    body::Body,
    server::{Grpc, NamedService},
    transport::Server,
};
use tower::{Service, service_fn};

use crate::{Result, measured::connection::Raw};

/// Maximum number of streams per connection, as in the daemon.
const STREAMS: u32 = 16 * 1024;

type Answer<T> = std::result::Result<Response<T>, Status>;
type Messages = Pin<Box<dyn Stream<Item = std::result::Result<Bytes, Status>> + Send>>;

/// The kept message, and the number of times to send it.
#[derive(Debug, Clone)]
struct Bare {
    kept: Arc<Mutex<Bytes>>,
    go: watch::Sender<usize>,
}

/// Serves on this socket until it is killed.
pub(super) fn run(socket: &Path) -> Result {
    let runtime = runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let connections = UnixListenerStream::new(UnixListener::bind(socket)?);
        let bare = Bare {
            kept: Arc::default(),
            go: watch::Sender::new(0),
        };
        let server = Server::builder()
            .max_concurrent_streams(STREAMS)
            .add_service(bare);
        Ok(server.serve_with_incoming(connections).await?)
    })
}

impl NamedService for Bare {
    const NAME: &'static str = "bare.Bare";
}

impl Service<http::Request<Body>> for Bare {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future =
        Pin<Box<dyn Future<Output = std::result::Result<http::Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let bare = self.clone();
        let streams = request.uri().path().ends_with("/Stream");
        let sinks = request.uri().path().ends_with("/Sink");
        let method = request
            .uri()
            .path()
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_owned();
        Box::pin(async move {
            let mut grpc = Grpc::new(Raw);
            let response = if sinks {
                let sink = service_fn(|request: Request<Streaming<Bytes>>| {
                    let answers = request.into_inner().map(|_| Ok(Bytes::new()));
                    let answers: Messages = Box::pin(answers);
                    std::future::ready(Ok::<_, Status>(Response::new(answers)))
                });
                grpc.streaming(sink, request).await
            } else if streams {
                let stream = service_fn(|_: Request<Bytes>| std::future::ready(bare.stream()));
                grpc.server_streaming(stream, request).await
            } else {
                let answer = service_fn(|request: Request<Bytes>| {
                    std::future::ready(bare.answer(&method, request.into_inner()))
                });
                grpc.unary(answer, request).await
            };
            Ok(response)
        })
    }
}

impl Bare {
    fn answer(&self, method: &str, message: Bytes) -> Answer<Bytes> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match method {
            "Put" => *kept = message,
            "Go" => {
                let count = str::from_utf8(&message)
                    .ok()
                    .and_then(|text| text.parse().ok());
                self.go
                    .send_replace(count.ok_or(Status::invalid_argument("no number"))?);
            }
            "Get" => return Ok(Response::new(kept.clone())),
            _ => return Err(Status::unimplemented(method)),
        }
        Ok(Response::new(Bytes::new()))
    }

    fn stream(&self) -> Answer<Messages> {
        let kept = Arc::clone(&self.kept);
        let rounds = WatchStream::from_changes(self.go.subscribe());
        let messages = rounds.map(move |count| {
            let kept = kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
            tokio_stream::iter(std::iter::repeat_n(Ok(kept), count))
        });
        let first = tokio_stream::once(Ok(Bytes::new()));
        Ok(Response::new(Box::pin(first.chain(Flat {
            rounds: messages,
            round: None,
        }))))
    }
}

/// The messages of each round, in order.
struct Flat<S, R> {
    rounds: S,
    round: Option<R>,
}

impl<S, R> Stream for Flat<S, R>
where
    S: Stream<Item = R> + Unpin,
    R: Stream + Unpin,
{
    type Item = R::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<R::Item>> {
        loop {
            if let Some(round) = &mut self.round {
                match Pin::new(round).poll_next(context) {
                    Poll::Ready(None) => self.round = None,
                    Poll::Ready(Some(item)) => return Poll::Ready(Some(item)),
                    Poll::Pending => return Poll::Pending,
                }
            }
            match Pin::new(&mut self.rounds).poll_next(context) {
                Poll::Ready(Some(round)) => self.round = Some(round),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
