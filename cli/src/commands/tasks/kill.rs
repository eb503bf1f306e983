//! `heeler kill`: cancels without a stop signal and without a grace.

use super::cancel::Cancel;
use crate::args::preset::Preset;

/// Marks `cancel --force`.
#[derive(Debug)]
pub(crate) struct Kill;

impl Preset for Kill {
    type Of = Cancel;

    const ABOUT: &'static str =
        "Kill every process of tasks at once, and prove that nothing is left";

    const AFTER_HELP: &'static str = "\
Examples:
  heeler kill shell-4k2mzq7xda
  heeler kill dev --reason 'it hangs'
  heeler kill --session s1

The tasks get no stop signal and no time to finish: their processes lose what they have not written. \
Use `heeler cancel` to ask first; it kills by itself after the task's grace.

The exit code is 0 when every process of every task is proven gone, 1 if a process is left, 3 if \
there is no such task. A task that is finished already is no error.";

    const HIDDEN: &'static [&'static str] = &["force", "grace", "signal"];
}
