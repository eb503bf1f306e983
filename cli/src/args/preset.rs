//! The arguments of a command that is another one with a flag set: `kill` is `cancel --force`, `follow` is
//! `logs --follow`. It has its own help and manual page.

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

/// The words of such a command.
pub(crate) trait Preset {
    /// The command that it is a form of.
    type Of: Args;

    const ABOUT: &'static str;
    const AFTER_HELP: &'static str;

    /// The flags of the other command that are set, or have no meaning here. Help does not show them.
    const HIDDEN: &'static [&'static str];
}

#[derive(Debug)]
pub(crate) struct PresetArgs<P: Preset>(pub(crate) P::Of);

impl<P: Preset> Args for PresetArgs<P> {
    fn augment_args(command: Command) -> Command {
        reword::<P>(P::Of::augment_args(command))
    }

    fn augment_args_for_update(command: Command) -> Command {
        reword::<P>(P::Of::augment_args_for_update(command))
    }
}

impl<P: Preset> FromArgMatches for PresetArgs<P> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        P::Of::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

fn reword<P: Preset>(command: Command) -> Command {
    let command = command.about(P::ABOUT).after_help(P::AFTER_HELP);
    let hide = |command: Command, flag: &&str| command.mut_arg(flag, |arg| arg.hide(true));
    P::HIDDEN.iter().fold(command, hide)
}
