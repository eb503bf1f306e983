//! The network: the socket, TCP and TLS.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod socket;
mod tcp;
mod tls;
