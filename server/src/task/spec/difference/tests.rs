//! The comparison of specifications, option by option.

use std::{collections::BTreeMap, time::Duration};

use super::*;
use crate::task::{
    EnvironmentDefaults, ExclusiveMode, IdKey, Kind, OnDisconnect, OnForegroundTimeout,
    OnReadyTimeout, OnStale, OrphanPolicy, Pattern, Seq, Signal,
};

const MINUTE: Duration = Duration::from_secs(60);

fn spec() -> Spec {
    Spec {
        working_directory: "/repo".into(),
        environment: Environment {
            variable_names: vec!["TOKEN".to_owned()],
            ..Environment::default()
        },
        foreground: Some(Foreground {
            timeout: MINUTE,
            on_timeout: OnForegroundTimeout::Detach,
            on_disconnect: OnDisconnect::Cancel,
            reattach_window: MINUTE,
        }),
        silence: Some(Silence {
            stale_after: MINUTE,
            on_stale: OnStale::Notify,
        }),
        exclusive: Some(Exclusive {
            key: "k".to_owned(),
            mode: ExclusiveMode::Ensure,
            variables: [("TOKEN".to_owned(), ValueDigest(1))].into(),
        }),
        input: Some(Input { notify_after: None }),
        ready: Some(Ready {
            probe: Probe::Port(None),
            interval: MINUTE,
            timeout: None,
            on_timeout: OnReadyTimeout::Notify,
        }),
        ..Spec::new(shell("make"))
    }
}

fn shell(script: &str) -> Command {
    Command::Shell {
        script: script.to_owned(),
        program: None,
    }
}

fn argv(args: &[&str]) -> Command {
    Command::Argv(args.iter().map(|arg| (*arg).to_owned()).collect())
}

/// The difference that a change makes, looked for from both sides.
fn after(change: impl FnOnce(&mut Spec)) -> Option<String> {
    let mut changed = spec();
    change(&mut changed);
    let difference = spec().first_difference(&changed);
    assert_eq!(changed.first_difference(&spec()), difference);
    difference
}

fn named(path: &str) -> Option<String> {
    Some(path.to_owned())
}

/// X4
#[test]
fn options_that_say_for_whom_a_task_runs_are_not_compared() {
    assert_eq!(after(|_| ()), None);
    let parent = IdKey(1).task_id(Kind::Shell, Seq(9));
    let same = after(|spec| {
        spec.name = "dev server".to_owned();
        spec.session_id = "s".to_owned();
        spec.parent = Some(parent);
        spec.labels = BTreeMap::from([("repo".to_owned(), "heeler".to_owned())]);
        spec.had_ampersand = true;
        let exclusive = spec.exclusive.as_mut();
        exclusive.expect("it has a key").mode = ExclusiveMode::Reject;
    });
    assert_eq!(same, None);
}

/// X4
#[test]
fn the_first_difference_is_named_by_its_path() {
    assert_eq!(after(|spec| spec.kind = Kind::Agent), named("spec.kind"));
    let script = after(|spec| spec.command = shell("make all"));
    assert_eq!(script, named("spec.shell.script"));
    let program = after(|spec| {
        spec.command = Command::Shell {
            script: "make".to_owned(),
            program: Some("/bin/zsh".into()),
        };
    });
    assert_eq!(program, named("spec.shell.program"));
    let command = after(|spec| spec.command = argv(&["make"]));
    assert_eq!(command, named("spec.command"));
    let timeout = after(|spec| spec.timeout = Some(MINUTE));
    assert_eq!(timeout, named("spec.timeout"));
    let idle = after(|spec| spec.idle_timeout = Some(MINUTE));
    assert_eq!(idle, named("spec.idle_timeout"));
    let grace = after(|spec| spec.stop.grace = MINUTE);
    assert_eq!(grace, named("spec.stop.grace"));
    let signal = after(|spec| spec.stop.signal = Signal(2));
    assert_eq!(signal, named("spec.stop.signal"));
    let soft_grace = after(|spec| spec.stop.soft_grace = MINUTE);
    assert_eq!(soft_grace, named("spec.stop.soft_grace"));
    let queue = after(|spec| spec.queue = Some("q".to_owned()));
    assert_eq!(queue, named("spec.queue"));
    let orphans = after(|spec| spec.orphan_policy = OrphanPolicy::Kill);
    assert_eq!(orphans, named("spec.orphan_policy"));
    let pattern = Pattern {
        name: "errors".to_owned(),
        regex: "^error".to_owned(),
        stream: None,
        cooldown: MINUTE,
        max_events: 1,
        from_offset: 0,
    };
    assert_eq!(after(|spec| spec.output.patterns.push(pattern)), None);
    let output = after(|spec| spec.output.head_bytes += 1);
    assert_eq!(output, named("spec.output.head_bytes"));
    let both = after(|spec| {
        spec.timeout = Some(MINUTE);
        spec.kind = Kind::Agent;
    });
    assert_eq!(
        both,
        named("spec.kind"),
        "the first in the contract's order"
    );
}

/// X4
#[test]
fn arguments_are_named_by_their_position() {
    let path = |one: &[&str], two: &[&str]| argv(one).first_difference(&argv(two));
    assert_eq!(path(&["a", "b"], &["a", "b"]), None);
    assert_eq!(path(&["a", "b"], &["a", "c"]), named("argv.args[1]"));
    assert_eq!(path(&["a"], &["a", "b"]), named("argv.args"));
}

/// X4
#[test]
fn a_group_is_compared_by_its_presence_and_then_by_its_fields() {
    let none = after(|spec| spec.foreground = None);
    assert_eq!(none, named("spec.foreground"));
    let window = after(|spec| {
        let foreground = spec.foreground.as_mut();
        foreground.expect("it has one").reattach_window = Duration::ZERO;
    });
    assert_eq!(window, named("spec.foreground.reattach_window"));
    let silence = after(|spec| {
        let silence = spec.silence.as_mut();
        silence.expect("it has one").on_stale = OnStale::Cancel;
    });
    assert_eq!(silence, named("spec.silence.on_stale"));
    let input = after(|spec| {
        let input = spec.input.as_mut();
        input.expect("it has one").notify_after = Some(MINUTE);
    });
    assert_eq!(input, named("spec.input.notify_after"));
}

/// X4
#[test]
fn a_ready_policy_is_compared_by_its_probe_and_its_times() {
    let ready =
        |change: fn(&mut Ready)| after(|spec| change(spec.ready.as_mut().expect("it has one")));
    let none = after(|spec| spec.ready = None);
    assert_eq!(none, named("spec.ready"));
    let port = ready(|ready| ready.probe = Probe::Port(Some(80)));
    assert_eq!(port, named("spec.ready.port"));
    let probe = ready(|ready| ready.probe = Probe::HttpUrl("http://localhost".to_owned()));
    assert_eq!(probe, named("spec.ready.probe"));
    let pattern = ready(|ready| ready.probe = Probe::Pattern("up".to_owned()));
    assert_eq!(pattern, named("spec.ready.probe"));
    let restart = after(|spec| {
        spec.restart = Some(crate::task::Restart {
            delay: MINUTE,
            max_delay: MINUTE,
            max_restarts: None,
            reset_after: MINUTE,
        });
    });
    assert_eq!(restart, named("spec.restart"));
    let interval = ready(|ready| ready.interval = Duration::ZERO);
    assert_eq!(interval, named("spec.ready.interval"));
    let timeout = ready(|ready| ready.timeout = Some(MINUTE));
    assert_eq!(timeout, named("spec.ready.timeout"));
    let action = ready(|ready| ready.on_timeout = OnReadyTimeout::Cancel);
    assert_eq!(action, named("spec.ready.on_timeout"));
}

/// X4
#[test]
fn directories_are_compared_by_their_resolved_names() {
    let same = after(|spec| spec.working_directory = "/srv/../repo/./".into());
    assert_eq!(same, None);
    let other = after(|spec| spec.working_directory = "/repo/docs".into());
    assert_eq!(other, named("spec.working_directory"));
}

/// X4, N4
#[test]
fn variables_are_compared_by_their_digests_and_named_without_values() {
    let digest = |value| {
        move |spec: &mut Spec| {
            let exclusive = spec.exclusive.as_mut().expect("it has a key");
            exclusive.variables.insert("TOKEN".to_owned(), value);
        }
    };
    assert_eq!(after(digest(ValueDigest(1))), None);
    let token = named("spec.environment.variables[\"TOKEN\"]");
    assert_eq!(after(digest(ValueDigest(2))), token);
    let unset = after(|spec| spec.environment.variable_names.clear());
    assert_eq!(unset, token);
    let order = |names: &[&str]| Environment {
        remove: names.iter().map(|name| (*name).to_owned()).collect(),
        ..Environment::default()
    };
    assert_eq!(
        order(&["A", "B"]).first_difference(&order(&["B", "A", "A"])),
        None
    );
    let removed = after(|spec| spec.environment.remove = vec!["HOME".to_owned()]);
    assert_eq!(removed, named("spec.environment.remove"));
    let defaults = after(|spec| spec.environment.defaults = EnvironmentDefaults::None);
    assert_eq!(defaults, named("spec.environment.defaults"));
}
