//! The shim's end of the wire. The shim is a program without a library part for this, so its source is
//! compiled here, over memory of our own.

pub(crate) mod program;

pub use program::orders;
