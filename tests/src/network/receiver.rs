//! A receiver of webhooks: a real HTTP server that answers as a test wants.

use std::{
    collections::VecDeque,
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use http::{HeaderMap, Request, Response, StatusCode, header::LOCATION};
use http_body_util::{BodyExt, Empty};
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use ring::hmac;
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpSocket},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring as provider,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

use crate::{Daemon, authority::Certified, eventually};

/// An answer to one request.
#[derive(Debug, Clone)]
pub enum Answer {
    Status(StatusCode),
    /// A redirect to this URL.
    Redirect(String),
    /// None, and the connection stays open.
    Silence,
}

/// A request that has arrived whole.
#[derive(Debug, Clone)]
pub struct Notice {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// False if it was answered by anything but a success.
    pub accepted: bool,
}

/// A receiver that accepts every request, but for the answers that it was told.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Until it listens.
    socket: Option<TcpSocket>,
    tls: Option<Certified>,
}

#[derive(Debug, Default)]
struct Shared {
    notices: Mutex<Vec<Notice>>,
    answers: Mutex<VecDeque<Answer>>,
}

impl Receiver {
    /// A receiver that has its address and refuses connections until it is started.
    pub fn down() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        Self {
            address: socket.local_addr().unwrap(),
            shared: Arc::default(),
            socket: Some(socket),
            tls: None,
        }
    }

    pub fn start() -> Self {
        let mut receiver = Self::down();
        receiver.listen();
        receiver
    }

    /// A receiver with this certificate.
    pub fn with_tls(certified: &Certified) -> Self {
        let mut receiver = Self::down();
        receiver.tls = Some(certified.clone());
        receiver.listen();
        receiver
    }

    pub fn listen(&mut self) {
        let listener = self.socket.take().expect("it is down").listen(64).unwrap();
        let tls = self.tls.as_ref().map(acceptor);
        // It ends with the runtime of the test.
        tokio::spawn(accept(listener, tls, Arc::clone(&self.shared)));
    }

    pub fn url(&self) -> String {
        match self.tls {
            Some(_) => format!("https://{}/hook?a=b", self.address),
            None => format!("http://{}/hook?a=b", self.address),
        }
    }

    /// Answers the next request like this.
    pub fn then(&self, answer: Answer) {
        self.shared.answers.lock().unwrap().push_back(answer);
    }

    /// Answers the next requests with errors.
    pub fn then_fail(&self, times: usize) {
        for _ in 0..times {
            self.then(Answer::Status(StatusCode::INTERNAL_SERVER_ERROR));
        }
    }

    /// The requests so far.
    pub fn notices(&self) -> Vec<Notice> {
        self.shared.notices.lock().unwrap().clone()
    }

    /// The requests that were accepted.
    pub fn accepted(&self) -> Vec<Notice> {
        let mut notices = self.notices();
        notices.retain(|notice| notice.accepted);
        notices
    }

    /// Waits until so many requests were accepted.
    pub async fn has_accepted(&self, count: usize) -> Vec<Notice> {
        eventually(&format!("{count} webhooks"), || {
            self.accepted().len() >= count
        })
        .await;
        self.accepted()
    }
}

impl Notice {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.expect("a header").to_str().unwrap()
    }

    pub fn revision(&self) -> u64 {
        let json = self.json();
        let revision = json["event"]["revision"].as_str();
        revision.expect("a revision").parse().unwrap()
    }

    /// True if it is signed with the secret of this daemon.
    pub fn is_signed_by(&self, daemon: &Daemon) -> bool {
        let secret = std::fs::read_to_string(daemon.path("state/webhook-secret")).unwrap();
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.trim_end().as_bytes());
        let digits = self.header("heeler-signature").strip_prefix("sha256=");
        let digits = digits.expect("the algorithm").as_bytes();
        let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
        let tag: Vec<u8> = digits.chunks(2).map(byte).collect();
        hmac::verify(&key, &self.body, &tag).is_ok()
    }
}

fn acceptor(files: &Certified) -> TlsAcceptor {
    let chain = CertificateDer::pem_file_iter(&files.certificate).unwrap();
    let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(&files.key).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(provider::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, shared) = (tls.clone(), Arc::clone(&shared));
        tokio::spawn(async move {
            let Some(tls) = tls else {
                return serve(stream, shared).await;
            };
            // A client that does not trust the certificate leaves.
            if let Ok(stream) = tls.accept(stream).await {
                serve(stream, shared).await;
            }
        });
    }
}

async fn serve<S>(stream: S, shared: Arc<Shared>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let answer = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(answer(&shared, request).await) }
    });
    // A client that leaves ends its connection.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), answer)
        .await;
}

async fn answer(shared: &Shared, request: Request<Incoming>) -> Response<Empty<Bytes>> {
    let (parts, body) = request.into_parts();
    let mut response = Response::new(Empty::new());
    let Ok(body) = body.collect().await else {
        return response;
    };
    let answer = shared.answers.lock().unwrap().pop_front();
    shared.notices.lock().unwrap().push(Notice {
        path: parts.uri.to_string(),
        headers: parts.headers,
        body: body.to_bytes(),
        accepted: answer.is_none(),
    });
    match answer {
        None => {}
        Some(Answer::Status(status)) => *response.status_mut() = status,
        Some(Answer::Redirect(to)) => {
            *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
            response.headers_mut().insert(LOCATION, to.parse().unwrap());
        }
        Some(Answer::Silence) => std::future::pending().await,
    }
    response
}
