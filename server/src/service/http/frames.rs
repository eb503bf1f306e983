//! Frames: a flag, a length and a message. gRPC and the Connect protocol share the form.

use prost::bytes::{Buf, BufMut, Bytes, BytesMut};
use tonic::{Code, Status};

use heeler_proto::v1::ErrorReason;

use crate::service::wire::refusal::Refusal;

/// The flag and the length.
const PREFIX: usize = 5;
/// The flag of the last frame of a Connect stream.
const END: u8 = 0b10;

/// Puts a message into a frame.
pub(super) fn framed(message: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(PREFIX + message.len());
    put(&mut frame, 0, message);
    frame.freeze()
}

/// Appends a frame of a Connect stream.
pub(super) fn put_message(to: &mut BytesMut, message: &[u8]) {
    put(to, 0, message);
}

/// Appends the last frame of a Connect stream.
pub(super) fn put_end(to: &mut BytesMut, message: &[u8]) {
    put(to, END, message);
}

fn put(to: &mut BytesMut, flag: u8, message: &[u8]) {
    to.reserve(PREFIX + message.len());
    to.put_u8(flag);
    to.put_u32(message.len() as u32);
    to.put_slice(message);
}

/// Takes a whole frame from the bytes that have arrived; `None` if there is none.
pub(super) fn take(from: &mut BytesMut) -> Option<Bytes> {
    let [_, length @ ..] = from.first_chunk::<PREFIX>()?;
    let length = u32::from_be_bytes(*length) as usize;
    if from.len() < PREFIX + length {
        return None;
    }
    from.advance(PREFIX);
    Some(from.split_to(length).freeze())
}

/// The message of a body that is exactly one frame. Compressed ones are refused.
pub(super) fn only(mut body: Bytes) -> Result<Bytes, Status> {
    let refused = |message: &str| {
        let reason = ErrorReason::RequestUnreadable;
        Status::from(Refusal::new(Code::InvalidArgument, reason, message))
    };
    let Some([flag, length @ ..]) = body.first_chunk::<PREFIX>() else {
        return Err(refused("the request must be one frame: 5 bytes and JSON"));
    };
    if *flag != 0 {
        return Err(refused("the frame of the request must have no flag"));
    }
    if u32::from_be_bytes(*length) as usize != body.len() - PREFIX {
        return Err(refused(
            "the request must be one frame of the length that it says",
        ));
    }
    body.advance(PREFIX);
    Ok(body)
}
