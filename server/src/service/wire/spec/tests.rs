//! Refusals name the path of the field, and a specification is shown as it was read.

use super::*;

fn spec() -> v1::TaskSpec {
    v1::TaskSpec {
        command: Some(CommandMessage::Argv(v1::ArgvCommand {
            args: vec!["true".to_owned()],
        })),
        ..v1::TaskSpec::default()
    }
}

fn read(spec: v1::TaskSpec) -> Result<SpawnRequest, Refusal> {
    request(v1::SpawnRequest {
        request_id: String::new(),
        spec: Some(spec),
    })
}

/// The field that a refusal names.
fn refused(change: impl FnOnce(&mut v1::TaskSpec)) -> String {
    let mut spec = spec();
    change(&mut spec);
    let refusal = read(spec).expect_err("it is refused");
    refusal.bad_field().expect("a field is named").to_owned()
}

fn span(seconds: i64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds, nanos: 0 })
}

fn variable(name: &str) -> Option<v1::TaskEnvironment> {
    Some(v1::TaskEnvironment {
        variables: [(name.to_owned(), "x".to_owned())].into(),
        ..v1::TaskEnvironment::default()
    })
}

/// S2
#[test]
fn a_request_without_spec_says_where_the_options_are() {
    let refusal = request(v1::SpawnRequest::default()).expect_err("it is refused");
    assert_eq!(refusal.bad_field(), Some("spec"));
    let status = tonic::Status::from(refusal);
    assert!(status.message().contains("fields of spec"), "{status:?}");
}

/// S2
#[test]
fn a_bad_environment_is_named() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    for name in ["A=B", "", "HEELER_TASK_ID"] {
        let field = refused(|spec| spec.environment = variable(name));
        assert_eq!(field, format!("spec.environment.variables[{name:?}]"));
    }
    let remove = |spec: &mut v1::TaskSpec| {
        spec.environment = Some(v1::TaskEnvironment {
            remove: names(&["GOOD", "HEELER_ADDR"]),
            ..v1::TaskEnvironment::default()
        });
    };
    assert_eq!(refused(remove), "spec.environment.remove[1]");
    let output_only = |spec: &mut v1::TaskSpec| {
        spec.environment = Some(v1::TaskEnvironment {
            variable_names: names(&["A"]),
            ..v1::TaskEnvironment::default()
        });
    };
    assert_eq!(refused(output_only), "spec.environment.variable_names");
}

/// S2
#[test]
fn a_bad_group_is_named_with_its_field() {
    let foreground = |policy| move |spec: &mut v1::TaskSpec| spec.foreground = Some(policy);
    let zero_window = v1::ForegroundPolicy {
        reattach_window: span(0),
        ..v1::ForegroundPolicy::default()
    };
    let kept = v1::ForegroundPolicy {
        on_disconnect: v1::DisconnectAction::Keep.into(),
        ..zero_window
    };
    let field = refused(foreground(zero_window));
    assert_eq!(field, "spec.foreground.reattach_window");
    let spec_with = |foreground| v1::TaskSpec {
        foreground: Some(foreground),
        ..spec()
    };
    assert!(read(spec_with(kept)).is_ok(), "KEEP needs no window");
    let zero_timeout = v1::ForegroundPolicy {
        timeout: span(0),
        ..v1::ForegroundPolicy::default()
    };
    let field = refused(foreground(zero_timeout));
    assert_eq!(field, "spec.foreground.timeout");
    let field = refused(|spec| spec.silence = Some(v1::SilencePolicy::default()));
    assert_eq!(field, "spec.silence.stale_after");
    let field = refused(|spec| spec.exclusive = Some(v1::ExclusivePolicy::default()));
    assert_eq!(field, "spec.exclusive.key");
    let field = refused(|spec| {
        spec.stop = Some(v1::StopPolicy {
            signal: "SIGNOPE".to_owned(),
            ..v1::StopPolicy::default()
        });
    });
    assert_eq!(field, "spec.stop.signal");
    let field = refused(|spec| {
        spec.queue = "q".to_owned();
        spec.exclusive = Some(v1::ExclusivePolicy {
            key: "k".to_owned(),
            mode: v1::ExclusiveMode::Replace.into(),
        });
    });
    assert_eq!(field, "spec.exclusive.mode");
}

/// S2
#[test]
fn a_bad_command_or_value_is_named() {
    let argv = |args: &[&str]| {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        Some(CommandMessage::Argv(v1::ArgvCommand { args }))
    };
    assert_eq!(refused(|spec| spec.command = None), "spec.command");
    assert_eq!(refused(|spec| spec.command = argv(&[])), "spec.argv.args");
    let field = refused(|spec| spec.command = argv(&["a", "b\0"]));
    assert_eq!(field, "spec.argv.args[1]");
    assert_eq!(refused(|spec| spec.kind = 3), "spec.kind");
    assert_eq!(refused(|spec| spec.timeout = span(-1)), "spec.timeout");
    let field = refused(|spec| spec.working_directory = "here".to_owned());
    assert_eq!(field, "spec.working_directory");
}

/// S1
#[test]
fn a_spec_is_shown_with_defaults_and_without_values_of_variables() {
    let mut asked = spec();
    asked.environment = variable("TOKEN");
    asked.foreground = Some(v1::ForegroundPolicy::default());
    let request = read(asked).expect("it is accepted");
    assert_eq!(request.variables["TOKEN"], "x");
    let shown = show(&request.spec);
    let environment = shown.environment.expect("it is always shown");
    assert!(environment.variables.is_empty());
    assert_eq!(environment.variable_names, ["TOKEN"]);
    let foreground = shown.foreground.expect("it was asked for");
    assert_eq!(foreground.timeout, span(60));
    assert_eq!(foreground.reattach_window, span(10));
    let stop = shown.stop.expect("it is always shown");
    assert_eq!((stop.grace, &*stop.signal), (span(5), "SIGTERM"));
    assert_eq!(shown.orphan_policy, i32::from(v1::OrphanPolicy::Track));
    assert_eq!((shown.silence, shown.exclusive), (None, None));
}
