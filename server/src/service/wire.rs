//! The contract's messages: what comes in is checked, what goes out is converted, and every failure is
//! mapped to one refusal.
//!
//! Nothing here decides or waits. A request that passes is a value of [`crate::task`] or of the
//! supervisor; a request that does not names the field at fault.

pub(super) mod check;
pub(super) mod convert;
pub(super) mod encodings;
pub(super) mod failure;
pub(super) mod filter;
pub(super) mod output;
pub(super) mod page_token;
pub(super) mod pattern;
pub(super) mod refusal;
pub(super) mod spec;
pub(super) mod stream;
pub(super) mod task;
pub(super) mod text;
pub(super) mod work;
