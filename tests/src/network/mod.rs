//! The network: TCP addresses and tokens, certificates, calls without a gRPC library, metrics, a receiver of
//! webhooks, and a collector of traces.

pub mod authority;
pub mod collector;
pub mod http1;
pub mod http2;
pub mod openmetrics;
pub mod receiver;
pub mod tcp;

pub use authority::Authority;
pub use collector::Collector;
pub use receiver::Receiver;
