//! `heeler follow`: prints output until the tasks finish.

use super::logs::Logs;
use crate::args::preset::Preset;

/// Marks `logs --follow`.
#[derive(Debug)]
pub(crate) struct Follow;

impl Preset for Follow {
    type Of = Logs;

    const ABOUT: &'static str = "Print the output of tasks, and go on until they finish";

    const AFTER_HELP: &'static str = "\
Examples:
  heeler follow dev
  heeler follow -n 20 shell-4k2mzq7xda
  heeler follow shell-4k2mzq7xda shell-7rw3hm2pqe

The output so far is printed first: with -n only its last lines, with --since only its latest part. \
Then new output is printed as it comes. Ctrl-C ends the command alone, never a task: use \
`heeler attach` to be a client of a foreground task.";

    const HIDDEN: &'static [&'static str] = &["follow", "head", "summary"];
}
