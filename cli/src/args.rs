//! Flags and arguments that several subcommands share, and the parsers of their values.

pub(crate) mod deferred_args;
pub(crate) mod input;
pub(crate) mod own_task;
pub(crate) mod preset;
pub(crate) mod ready;
pub(crate) mod restart;
pub(crate) mod selection;
pub(crate) mod spawn_request;
pub(crate) mod task;
pub(crate) mod task_filter;
pub(crate) mod value;

/// Parses a set of flags in a test.
#[cfg(test)]
pub(crate) fn parse<T: clap::Args>(args: &[&str]) -> Result<T, clap::Error> {
    let command = T::augment_args(clap::Command::new("heeler"));
    let matches = command.try_get_matches_from([&["heeler"], args].concat())?;
    T::from_arg_matches(&matches)
}
