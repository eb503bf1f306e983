//! A client of the daemon by the contract alone: calls, streams, and what answers say.

pub mod api;
pub mod attachment;
pub mod follow;
pub mod follower;
pub mod history;
pub mod input;
pub mod outcome;
pub mod output;
pub mod refusal;
pub mod sessions;
pub mod watch;
pub mod worker;

pub use api::Api;
pub use attachment::Attachment;
pub use follow::Follow;
pub use follower::Follower;
pub use refusal::Refusal;
pub use watch::Watch;
pub use worker::Worker;
