//! The network: TCP addresses and tokens, certificates, and calls without a gRPC library.

pub mod authority;
pub mod http2;
pub mod tcp;

pub use authority::Authority;
