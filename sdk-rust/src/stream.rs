//! The streams. Those of the daemon are resumed after a break ([`resume`]); lists and output are fetched
//! in batches ([`batches`]).

mod attach;
mod batches;
mod follow;
mod output;
mod resume;
mod tasks;
mod watch;

pub use attach::{Attach, AttachEnded, AttachItem, AttachOptions};
pub use follow::{Follow, FollowItem};
pub use output::{Chunk, Output};
pub use tasks::Tasks;
pub use watch::{Watch, WatchItem, WatchOptions};
