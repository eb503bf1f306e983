//! The codec of the server's stub.

use std::marker::PhantomData;

use prost::Message;
use tonic::codec::{BufferSettings, Codec};
use tonic_prost::ProstCodec;

/// The buffer that a call has from its begin to its end, in each direction. tonic's default is 8 KiB, which
/// is most of the memory of a stream that waits. A larger message takes what it needs.
const BUFFER: usize = 256;
/// Messages that are ready are sent together up to this size, as by default.
const SENT_TOGETHER: usize = 32 << 10;

/// prost, with small buffers.
#[derive(Debug, Clone)]
pub struct SmallBuffers<T, U>(PhantomData<fn(T) -> U>);

impl<T, U> Default for SmallBuffers<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for SmallBuffers<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = <ProstCodec<T, U> as Codec>::Encoder;
    type Decoder = <ProstCodec<T, U> as Codec>::Decoder;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<T, U>::raw_encoder(settings())
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstCodec::<T, U>::raw_decoder(settings())
    }
}

fn settings() -> BufferSettings {
    BufferSettings::new(BUFFER, SENT_TOGETHER)
}
