//! The connection to a daemon: its address, its credentials, the default paths and the channel.

pub(crate) mod address;
pub(crate) mod channel;
pub(crate) mod credentials;
pub mod paths;
pub(crate) mod start;

pub use address::{Address, AddressError};
pub use credentials::{ConnectOptions, CredentialsError, Headers};
