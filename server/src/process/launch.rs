//! The program and the environment that a task is started with.

mod environment;
mod program;

pub use environment::{BaseEnv, EnvBlock};
pub use program::Unusable;

pub(crate) use environment::{RESERVED_PREFIX, ServerAddress};
pub(crate) use program::{Executable, check_directory, resolve};

pub(in crate::process) use environment::ENVIRONMENT_TAG;
