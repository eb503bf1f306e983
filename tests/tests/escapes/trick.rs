//! The tricks, as scripts of the fixture.
//!
//! In a script, `COUNTER` is the file that the escapee adds to while it lives, `FOREIGN` the pid of a
//! process in a PID namespace outside of the task, `OUTSIDE` a cgroup outside of the task.

use heeler_tests::Setting;

/// A way to escape.
#[derive(Debug, Clone)]
pub(crate) struct Trick {
    pub(crate) name: &'static str,
    pub(crate) script: &'static str,
    pub(crate) needs: Needs,
}

/// The settings in which a trick can be tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    /// A cgroup of the task's own: elsewhere the trick would change that of the tests.
    OwnCgroup,
}

impl Trick {
    pub(crate) fn can_be_tried(&self, setting: Setting) -> bool {
        match self.needs {
            Needs::Nothing => true,
            Needs::OwnCgroup => setting == Setting::Cgroup,
        }
    }
}

pub(crate) fn all() -> Vec<Trick> {
    let trick = |(name, script): &(&'static str, &'static str)| Trick {
        name,
        script,
        needs: match script.contains("threaded-cgroup") {
            true => Needs::OwnCgroup,
            false => Needs::Nothing,
        },
    };
    ALL.iter().map(trick).collect()
}

const ALL: &[(&str, &str)] = &[
    ("plain child", "fork [ pid escapee beat COUNTER ] forever"),
    (
        "TERM ignored",
        "ignore TERM fork [ pid escapee beat COUNTER ] forever",
    ),
    (
        "own session",
        "fork [ setsid pid escapee beat COUNTER ] forever",
    ),
    (
        "double fork",
        "double-fork [ pid escapee beat COUNTER ] forever",
    ),
    (
        "closed descriptors",
        "fork [ close-all pid escapee beat COUNTER ] forever",
    ),
    (
        "cleared environment",
        "fork [ clean-exec [ pid escapee beat COUNTER ] ] forever",
    ),
    (
        "all of these together",
        "ignore TERM double-fork [ setsid close-all clean-exec [ pid escapee beat COUNTER ] ] forever",
    ),
    (
        "stopped tree",
        "fork [ setsid fork [ pid escapee stop stop stop forever ] pid parent stop stop stop forever ] forever",
    ),
    (
        "runaway lineages",
        "ignore TERM lineages 2 COUNTER pid escapee forever",
    ),
    (
        "chain of 300 nested sessions",
        "fork [ nested 300 pid escapee beat COUNTER ] forever",
    ),
    (
        "main thread exited",
        "double-fork [ setsid pid escapee lose-main-thread ] forever",
    ),
    (
        "leader's main thread exited",
        "pid escapee lose-main-thread",
    ),
    (
        "environment overwritten by a title",
        "double-fork [ setsid overwrite-environment pid escapee beat COUNTER ] forever",
    ),
    (
        "not dumpable",
        "double-fork [ setsid undumpable pid escapee beat COUNTER ] forever",
    ),
    (
        "title, not dumpable, leader exited",
        "double-fork [ setsid overwrite-environment undumpable pid escapee beat COUNTER ] exit 0",
    ),
    (
        "into a PID namespace from before, double fork, cleared environment",
        "enter-namespaces FOREIGN double-fork [ setsid clean-exec [ pid escapee beat COUNTER ] ] forever",
    ),
    (
        "own PID namespace",
        "double-fork [ setsid pid-namespace [ clean-exec [ pid escapee beat COUNTER ] ] ] forever",
    ),
    (
        "own user namespace",
        "double-fork [ setsid user-namespace pid escapee beat COUNTER ] forever",
    ),
    (
        "left its cgroup, cleared environment",
        "double-fork [ setsid join-cgroup OUTSIDE clean-exec [ pid escapee beat COUNTER ] ] forever",
    ),
    (
        "threaded child cgroup",
        "threaded-cgroup inner pid escapee beat COUNTER",
    ),
    ("stops its shim", "hold-shim stop pid escapee beat COUNTER"),
    (
        "traces its shim",
        "hold-shim trace pid escapee beat COUNTER",
    ),
];
