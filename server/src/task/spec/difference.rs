//! The comparison of two specifications, for a Spawn that takes an equal task for its own.
//!
//! Options that say what a task does are compared; those that say for whom it runs (name, session, parent,
//! labels) and how its key is claimed are not. A path names a difference as the contract does.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::{Command, Spec};
use crate::task::{
    Environment, Exclusive, Foreground, Input, OutputPolicy, Probe, Ready, Restart, Silence,
    StopPolicy, Terminal, ValueDigest, filter::normalised,
};

impl Spec {
    /// The first option in which two specifications differ, such as `spec.shell.script`; `None` if they
    /// are equal. Both have their directory resolved.
    pub(crate) fn first_difference(&self, other: &Self) -> Option<String> {
        // A new option does not compile until it is compared, or left out here.
        let Self {
            kind,
            name: _,
            session_id: _,
            parent: _,
            labels: _,
            command,
            working_directory,
            environment,
            timeout,
            idle_timeout,
            stop,
            foreground,
            silence,
            exclusive,
            queue,
            orphan_policy,
            output,
            input,
            terminal,
            ready,
            restart,
            rights,
            had_ampersand: _,
        } = self;
        let directories =
            [working_directory, &other.working_directory].map(|path| normalised(path));
        let plain = |path: &str, is_equal: bool| (!is_equal).then(|| path.to_owned());
        let difference = plain("kind", *kind == other.kind)
            .or_else(|| command.first_difference(&other.command))
            .or_else(|| plain("working_directory", directories[0] == directories[1]))
            .or_else(|| environment.first_difference(&other.environment))
            .or_else(|| variable(exclusive.as_ref()?, other.exclusive.as_ref()?))
            .or_else(|| plain("timeout", *timeout == other.timeout))
            .or_else(|| plain("idle_timeout", *idle_timeout == other.idle_timeout))
            .or_else(|| stop.first_difference(other.stop).map(str::to_owned))
            .or_else(|| group("foreground", *foreground, other.foreground, in_foreground))
            .or_else(|| group("silence", *silence, other.silence, in_silence))
            .or_else(|| plain("queue", *queue == other.queue))
            .or_else(|| plain("orphan_policy", *orphan_policy == other.orphan_policy))
            .or_else(|| output.first_difference(&other.output).map(str::to_owned))
            .or_else(|| group("input", *input, other.input, in_input))
            .or_else(|| {
                let theirs = other.terminal.as_ref();
                group("terminal", terminal.as_ref(), theirs, in_terminal)
            })
            .or_else(|| group("ready", ready.as_ref(), other.ready.as_ref(), in_ready))
            .or_else(|| group("restart", *restart, other.restart, in_restart))
            .or_else(|| plain("rights", *rights == other.rights));
        difference.map(|path| format!("spec.{path}"))
    }
}

impl Command {
    fn first_difference(&self, other: &Self) -> Option<String> {
        match (self, other) {
            (Self::Argv(one), Self::Argv(two)) if one.len() != two.len() => {
                Some("argv.args".to_owned())
            }
            (Self::Argv(one), Self::Argv(two)) => {
                let at = one.iter().zip(two).position(|(one, two)| one != two)?;
                Some(format!("argv.args[{at}]"))
            }
            (
                Self::Shell { script, program },
                Self::Shell {
                    script: other_script,
                    program: other_program,
                },
            ) => {
                let fields = [
                    ("shell.script", script == other_script),
                    ("shell.program", program == other_program),
                ];
                first_unequal(&fields).map(str::to_owned)
            }
            // The lease says how long a worker may be away, not what it does; the answer names it.
            (Self::Hosted { lease: _ }, Self::Hosted { lease: _ }) => None,
            (Self::Argv(_) | Self::Shell { .. } | Self::Hosted { .. }, _) => {
                Some("command".to_owned())
            }
        }
    }
}

impl Environment {
    /// Compares everything but the values of variables.
    fn first_difference(&self, other: &Self) -> Option<String> {
        let Self {
            remove,
            defaults,
            variable_names,
        } = self;
        let removed: BTreeSet<_> = remove.iter().collect();
        if removed != other.remove.iter().collect() {
            return Some("environment.remove".to_owned());
        }
        if *defaults != other.defaults {
            return Some("environment.defaults".to_owned());
        }
        let (ours, theirs): (BTreeSet<_>, BTreeSet<_>) = (
            variable_names.iter().collect(),
            other.variable_names.iter().collect(),
        );
        let name = ours.symmetric_difference(&theirs).next()?;
        Some(variable_path(name))
    }
}

/// The first variable whose values differ.
fn variable(ours: &Exclusive, theirs: &Exclusive) -> Option<String> {
    let differs =
        |(name, value): &(&String, &ValueDigest)| theirs.variables.get(*name) != Some(*value);
    let (name, _) = ours.variables.iter().find(differs)?;
    Some(variable_path(name))
}

/// The path of a variable: its name, never its value.
fn variable_path(name: &str) -> String {
    let shown: String = name.chars().take(64).collect();
    format!("environment.variables[{shown:?}]")
}

impl StopPolicy {
    fn first_difference(self, other: Self) -> Option<&'static str> {
        let Self {
            grace,
            signal,
            soft_grace,
        } = self;
        first_unequal(&[
            ("stop.grace", grace == other.grace),
            ("stop.signal", signal == other.signal),
            ("stop.soft_grace", soft_grace == other.soft_grace),
        ])
    }
}

impl OutputPolicy {
    fn first_difference(&self, other: &Self) -> Option<&'static str> {
        let Self {
            max_bytes,
            head_bytes,
            on_limit,
            // UpdateTask may have changed them.
            patterns: _,
        } = self;
        first_unequal(&[
            ("output.max_bytes", *max_bytes == other.max_bytes),
            ("output.head_bytes", *head_bytes == other.head_bytes),
            ("output.on_limit", *on_limit == other.on_limit),
        ])
    }
}

/// Compares two optional groups by presence, then by their fields.
fn group<G: Copy>(
    name: &str,
    ours: Option<G>,
    theirs: Option<G>,
    field: fn(G, G) -> Option<&'static str>,
) -> Option<String> {
    match (ours, theirs) {
        (None, None) => None,
        (Some(ours), Some(theirs)) => field(ours, theirs).map(|field| format!("{name}.{field}")),
        (Some(_), None) | (None, Some(_)) => Some(name.to_owned()),
    }
}

fn in_foreground(ours: Foreground, theirs: Foreground) -> Option<&'static str> {
    let Foreground {
        timeout,
        on_timeout,
        on_disconnect,
        reattach_window,
    } = ours;
    let fields = [
        ("timeout", timeout == theirs.timeout),
        ("on_timeout", on_timeout == theirs.on_timeout),
        ("on_disconnect", on_disconnect == theirs.on_disconnect),
        ("reattach_window", reattach_window == theirs.reattach_window),
    ];
    first_unequal(&fields)
}

fn in_silence(ours: Silence, theirs: Silence) -> Option<&'static str> {
    let Silence {
        stale_after,
        on_stale,
    } = ours;
    let fields = [
        ("stale_after", stale_after == theirs.stale_after),
        ("on_stale", on_stale == theirs.on_stale),
    ];
    first_unequal(&fields)
}

fn in_input(ours: Input, theirs: Input) -> Option<&'static str> {
    let Input { notify_after } = ours;
    first_unequal(&[("notify_after", notify_after == theirs.notify_after)])
}

fn in_terminal(ours: &Terminal, theirs: &Terminal) -> Option<&'static str> {
    let Terminal { size, term } = ours;
    let fields = [
        ("columns", size.columns == theirs.size.columns),
        ("rows", size.rows == theirs.size.rows),
        ("term", *term == theirs.term),
    ];
    first_unequal(&fields)
}

fn in_restart(ours: Restart, theirs: Restart) -> Option<&'static str> {
    let Restart {
        delay,
        max_delay,
        max_restarts,
        reset_after,
    } = ours;
    let fields = [
        ("delay", delay == theirs.delay),
        ("max_delay", max_delay == theirs.max_delay),
        ("max_restarts", max_restarts == theirs.max_restarts),
        ("reset_after", reset_after == theirs.reset_after),
    ];
    first_unequal(&fields)
}

fn in_ready(ours: &Ready, theirs: &Ready) -> Option<&'static str> {
    let Ready {
        probe,
        interval,
        timeout,
        on_timeout,
    } = ours;
    let probe_field = match (probe, &theirs.probe) {
        (Probe::Port(_), Probe::Port(_)) => "port",
        (Probe::HttpUrl(_), Probe::HttpUrl(_)) => "http_url",
        (Probe::Command(_), Probe::Command(_)) => "command",
        (Probe::Pattern(_), Probe::Pattern(_)) => "pattern",
        (Probe::Port(_) | Probe::HttpUrl(_) | Probe::Command(_) | Probe::Pattern(_), _) => "probe",
    };
    let fields = [
        (probe_field, *probe == theirs.probe),
        ("interval", *interval == theirs.interval),
        ("timeout", *timeout == theirs.timeout),
        ("on_timeout", *on_timeout == theirs.on_timeout),
    ];
    first_unequal(&fields)
}

fn first_unequal(fields: &[(&'static str, bool)]) -> Option<&'static str> {
    let unequal = fields.iter().find(|(_, is_equal)| !is_equal);
    unequal.map(|(name, _)| *name)
}
