//! A subcommand's arguments, described only once it is known that they are needed.
//!
//! A command that runs for a millisecond would otherwise spend a fifth of it on describing the
//! arguments of all the others.

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

/// What a subcommand takes.
#[derive(Debug)]
pub(crate) struct Deferred<T>(pub(crate) T);

impl<T: Args> Args for Deferred<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(T::augment_args)
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(T::augment_args_for_update)
    }
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}
