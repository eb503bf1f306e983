//! The arguments of a subcommand, described to clap only when that subcommand is used.
//!
//! A client command runs for a millisecond, and describing the arguments of all other subcommands would
//! take a fifth of it.

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

#[derive(Debug)]
pub(crate) struct DeferredArgs<T>(pub(crate) T);

impl<T: Args> Args for DeferredArgs<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(T::augment_args)
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(T::augment_args_for_update)
    }
}

impl<T: FromArgMatches> FromArgMatches for DeferredArgs<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}
