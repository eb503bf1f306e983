//! The program and the environment that a task is started with.

mod environment;
mod program;

pub(crate) use environment::BaseEnv;
pub use environment::EnvBlock;
pub(crate) use program::Unusable;

pub(crate) use environment::{RESERVED_PREFIX, ServerAddress};
pub(crate) use program::{Executable, check_directory, resolve};

pub(in crate::process) use environment::ENVIRONMENT_TAG;
