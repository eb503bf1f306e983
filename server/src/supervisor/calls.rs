//! The calls of the service that act on tasks. A check that can refuse a call comes first; a live task is asked by a
//! message to its actor, and a finished one is answered from the journal.

pub(super) mod input;
pub(super) mod observe;
pub(super) mod queues;
pub(super) mod requests;
pub(super) mod screen;
pub(super) mod spawn;
pub(super) mod work;
