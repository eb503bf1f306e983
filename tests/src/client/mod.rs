//! Everything that talks to a daemon: the API, its streams, the command, grpcurl and bare HTTP/2.

pub mod api;
pub mod attachment;
pub mod authority;
pub mod cli;
pub mod follower;
pub mod grpcurl;
pub mod http2;
pub mod refusal;
pub mod sessions;
pub mod terminal;
pub mod watch;

pub use api::Api;
pub use attachment::Attachment;
pub use authority::Authority;
pub use follower::Follower;
pub use refusal::Refusal;
pub use watch::Watch;
