//! Programs that tests run: `heeler` at a shell or a terminal, grpcurl, and the builds of both.

pub mod binary;
pub mod cli;
pub mod grpcurl;
pub mod screen;
pub mod terminal;
