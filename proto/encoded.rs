//! A message in its encoded form.

use std::marker::PhantomData;

use prost::{
    DecodeError, Message,
    bytes::{Buf, BufMut, Bytes},
    encoding::{DecodeContext, WireType, skip_field},
};

/// The bytes of an `M`, sent as they are. Clones share the bytes.
#[derive(Debug)]
pub struct Encoded<M> {
    bytes: Bytes,
    message: PhantomData<fn() -> M>,
}

impl<M: Message> Encoded<M> {
    /// Encodes a message.
    pub fn new(message: &M) -> Self {
        Self::from_parts(&[], message)
    }

    /// Joins encoded parts of a message and the rest of it. Encoded messages that are concatenated decode as
    /// one message with the fields of all.
    pub fn from_parts(parts: &[Bytes], rest: &M) -> Self {
        let len: usize = parts.iter().map(Bytes::len).sum();
        let mut bytes = Vec::with_capacity(len + rest.encoded_len());
        for part in parts {
            bytes.extend_from_slice(part);
        }
        rest.encode_raw(&mut bytes);
        Self::from_bytes(bytes.into())
    }
}

impl<M> Encoded<M> {
    /// Wraps bytes that are an encoded `M`.
    pub fn from_bytes(bytes: Bytes) -> Self {
        Self {
            bytes,
            message: PhantomData,
        }
    }

    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }
}

impl<M> Clone for Encoded<M> {
    fn clone(&self) -> Self {
        Self::from_bytes(self.bytes.clone())
    }
}

/// For sending alone: to read one, decode an `M`.
impl<M> Message for Encoded<M> {
    fn encode_raw(&self, to: &mut impl BufMut) {
        to.put_slice(&self.bytes);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        from: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        skip_field(wire_type, tag, from, context)
    }

    fn encoded_len(&self) -> usize {
        self.bytes.len()
    }

    fn clear(&mut self) {
        self.bytes.clear();
    }
}
