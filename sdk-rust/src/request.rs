//! The builders of requests. Each becomes the message of its call.

mod cancel;
mod detach;
mod filter;
mod hosted;
mod list;
mod queue;
mod spawn;
mod wait;

pub use cancel::CancelOptions;
pub use detach::DetachOptions;
pub use filter::Filter;
pub use hosted::Hosted;
pub use list::ListOptions;
pub use queue::QueueUpdate;
pub use spawn::Spawn;
pub use wait::Wait;
