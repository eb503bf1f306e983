//! The answer of a gRPC service in the form of the Connect protocol.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{CONTENT_TYPE, WWW_AUTHENTICATE},
};
use http_body::{Body as HttpBody, Frame};
use http_body_util::{BodyExt, Full};
use prost::bytes::{Bytes, BytesMut};
use serde_json::json;
use tonic::{Code, Status, body::Body};

use super::{
    contract::{Form, Method},
    error, frames,
    json::{WriteError, Writer},
};
use crate::service::transport::Call;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const STREAM: HeaderValue = HeaderValue::from_static("application/connect+json");
const REQUEST_ID: &str = "x-request-id";

/// Transforms the answer of a method.
pub(super) async fn transform(method: &Method, response: Response<Body>) -> Response<Body> {
    let id = response.headers().get(REQUEST_ID).cloned();
    let mut answer = match method.form {
        Form::Unary => match unary(method, response).await {
            Ok(answer) => answer,
            Err(status) => refused(&status),
        },
        Form::Stream | Form::Duplex => stream(method, response),
    };
    if let Some(id) = id {
        answer.headers_mut().insert(REQUEST_ID, id);
    }
    answer
}

/// An error in the form of the method's answers.
pub(super) fn refusal(form: Form, status: &Status) -> Response<Body> {
    match form {
        Form::Unary => refused(status),
        Form::Stream | Form::Duplex => {
            let mut end = BytesMut::new();
            put_end(&mut end, Some(status));
            with_type(STREAM, Body::new(Full::new(end.freeze())))
        }
    }
}

/// An error as a whole response.
pub(super) fn refused(status: &Status) -> Response<Body> {
    let text = error::json(status).to_string();
    let mut response = with_type(JSON, Body::new(Full::new(Bytes::from(text))));
    *response.status_mut() = error::http_status(status);
    if status.code() == Code::Unauthenticated {
        let bearer = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(WWW_AUTHENTICATE, bearer);
    }
    response
}

/// The same with another HTTP status.
pub(super) fn refused_as(code: StatusCode, status: &Status) -> Response<Body> {
    let mut response = refused(status);
    *response.status_mut() = code;
    response
}

async fn unary(method: &Method, response: Response<Body>) -> Result<Response<Body>, Status> {
    let (parts, body) = response.into_parts();
    check(&parts.headers)?;
    let collected = body.collect().await?;
    if let Some(trailers) = collected.trailers() {
        check(trailers)?;
    }
    let mut bytes = BytesMut::from(collected.to_bytes());
    let message = frames::take(&mut bytes)
        .ok_or_else(|| Status::internal("the service has sent no whole message"))?;
    let json = Bytes::from(method.writer.write(&message).map_err(unwritable)?);
    // JSON is larger than the answer that was counted.
    let json = match parts.extensions.get::<Call>() {
        Some(call) => {
            call.hold(json.len());
            call.clone().counted(json)
        }
        None => json,
    };
    Ok(with_type(JSON, Body::new(Full::new(json))))
}

fn unwritable(error: WriteError) -> Status {
    Status::internal(format!("the response cannot be written as JSON: {error}"))
}

fn check(headers: &HeaderMap) -> Result<(), Status> {
    match Status::from_header_map(headers) {
        Some(status) if status.code() != Code::Ok => Err(status),
        Some(_) | None => Ok(()),
    }
}

fn stream(method: &Method, response: Response<Body>) -> Response<Body> {
    let (parts, body) = response.into_parts();
    if let Err(status) = check(&parts.headers) {
        return refusal(method.form, &status);
    }
    let body = Messages {
        body,
        call: parts.extensions.get().cloned(),
        writer: Arc::clone(&method.writer),
        arrived: BytesMut::new(),
        stage: Stage::Open,
        is_others_turn: false,
    };
    with_type(STREAM, Body::new(body))
}

fn with_type(content_type: HeaderValue, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

fn put_end(to: &mut BytesMut, error: Option<&Status>) {
    let end = match error {
        Some(status) => json!({"error": error::json(status)}),
        None => json!({}),
    };
    frames::put_end(to, end.to_string().as_bytes());
}

/// The messages of a gRPC stream as frames with JSON. It is polled when the connection has room, and holds
/// no more than what one poll of the gRPC stream has given.
struct Messages {
    body: Body,
    /// The call whose memory the frames take, if the stream is of this process.
    call: Option<Call>,
    writer: Arc<Writer>,
    arrived: BytesMut,
    stage: Stage,
    /// Other tasks of the runtime come before the next messages: a client with much room would keep its thread.
    is_others_turn: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    /// The last frame was sent.
    Ended,
}

impl Messages {
    /// The frames of all whole messages that have arrived.
    fn ready(&mut self) -> Result<BytesMut, Status> {
        let mut ready = BytesMut::new();
        while let Some(message) = frames::take(&mut self.arrived) {
            frames::put_message(
                &mut ready,
                &self.writer.write(&message).map_err(unwritable)?,
            );
        }
        Ok(ready)
    }

    fn counted(&self, frames: Bytes) -> Bytes {
        match &self.call {
            Some(call) => call.counted_piece(frames),
            None => frames,
        }
    }

    fn end(&mut self, mut ready: BytesMut, error: Option<&Status>) -> Frame<Bytes> {
        self.stage = Stage::Ended;
        put_end(&mut ready, error);
        Frame::data(ready.freeze())
    }
}

impl HttpBody for Messages {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        if this.stage == Stage::Ended {
            return Poll::Ready(None);
        }
        if std::mem::take(&mut this.is_others_turn) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        loop {
            let frame = ready!(Pin::new(&mut this.body).poll_frame(context));
            let end = match frame {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        this.arrived.extend_from_slice(&data);
                        match this.ready() {
                            Ok(ready) if ready.is_empty() => continue,
                            Ok(ready) => {
                                this.is_others_turn = true;
                                let frames = this.counted(ready.freeze());
                                return Poll::Ready(Some(Ok(Frame::data(frames))));
                            }
                            Err(status) => Err(status),
                        }
                    }
                    Err(frame) => match frame.into_trailers() {
                        Ok(trailers) => check(&trailers),
                        Err(_) => continue,
                    },
                },
                Some(Err(status)) => Err(status),
                None => Err(Status::unavailable("the stream has broken off")),
            };
            let end = this.end(BytesMut::new(), end.err().as_ref());
            return Poll::Ready(Some(Ok(end)));
        }
    }
}
