//! One call without a gRPC library: the server's own answer, unaltered by a client's deadlines and
//! limits.

use std::path::Path;

use http::{HeaderMap, Request};
use prost::{Message, bytes::Bytes};
use tokio::net::UnixStream;

use crate::daemon::SERVICE;

/// Makes a unary call, and returns the headers and trailers of the answer.
pub async fn call(
    socket: &Path,
    method: &str,
    message: &impl Message,
    headers: &[(&str, &str)],
) -> HeaderMap {
    let stream = UnixStream::connect(socket).await.unwrap();
    let (client, connection) = h2::client::handshake(stream).await.unwrap();
    let connection = tokio::spawn(connection);
    let mut request = Request::post(format!("http://localhost/{SERVICE}/{method}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut client = client.ready().await.unwrap();
    let (answer, mut body) = client
        .send_request(request.body(()).unwrap(), false)
        .unwrap();
    let message = message.encode_to_vec();
    let mut framed = vec![0];
    framed.extend_from_slice(&u32::try_from(message.len()).unwrap().to_be_bytes());
    framed.extend_from_slice(&message);
    body.send_data(Bytes::from(framed), true).unwrap();
    let answer = answer.await.unwrap();
    let mut all = answer.headers().clone();
    let mut body = answer.into_body();
    while let Some(data) = body.data().await {
        let read = data.unwrap().len();
        body.flow_control().release_capacity(read).unwrap();
    }
    all.extend(body.trailers().await.unwrap().unwrap_or_default());
    connection.abort();
    all
}
