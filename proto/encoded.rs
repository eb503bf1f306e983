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
    /// More fields of the same message, sent right behind `bytes`.
    appended: Bytes,
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
            appended: Bytes::new(),
            message: PhantomData,
        }
    }

    /// Appends encoded fields of an `M`; the first time without a copy.
    pub fn append(&mut self, fields: Bytes) {
        self.appended = match self.appended.is_empty() {
            true => fields,
            false => [&*self.appended, &*fields].concat().into(),
        };
    }

    /// The bytes.
    pub fn into_bytes(self) -> Bytes {
        if self.appended.is_empty() {
            return self.bytes;
        }
        [self.bytes, self.appended].concat().into()
    }
}

impl<M> Clone for Encoded<M> {
    fn clone(&self) -> Self {
        Self {
            bytes: self.bytes.clone(),
            appended: self.appended.clone(),
            message: PhantomData,
        }
    }
}

/// For sending alone: to read one, decode an `M`.
impl<M> Message for Encoded<M> {
    fn encode_raw(&self, to: &mut impl BufMut) {
        to.put_slice(&self.bytes);
        to.put_slice(&self.appended);
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
        self.bytes.len() + self.appended.len()
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.appended.clear();
    }
}
