//! Flags and arguments that several subcommands share, and the parsers of their values.

pub(crate) mod choices;
pub(crate) mod deferred_args;
pub(crate) mod detach_key;
pub(crate) mod duration;
pub(crate) mod key_value;
pub(crate) mod listen_address;
pub(crate) mod own_task;
pub(crate) mod preset;
pub(crate) mod ready;
pub(crate) mod selection;
pub(crate) mod signal;
pub(crate) mod size;
pub(crate) mod spawn_request;
pub(crate) mod task;
pub(crate) mod task_filter;

/// Parses a set of flags in a test.
#[cfg(test)]
pub(crate) fn parse<T: clap::Args>(args: &[&str]) -> Result<T, clap::Error> {
    let command = T::augment_args(clap::Command::new("heeler"));
    let matches = command.try_get_matches_from([&["heeler"], args].concat())?;
    T::from_arg_matches(&matches)
}
