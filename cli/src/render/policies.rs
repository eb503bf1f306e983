//! The policies of a task and their effects so far, as named facts for the card.

use std::time::Duration;

use heeler_client::{
    time,
    v1::{
        BackgroundTask, DisconnectAction, ExclusiveMode, ExclusivePolicy, ForegroundPolicy,
        ForegroundTimeoutAction, OrphanPolicy, OutputLimit, OutputLimitAction, OutputLimitCause,
        OutputPattern, OutputPolicy, PatternMatches, Placement, Readiness, ReadyTimeoutAction,
        SilencePolicy, StaleAction, TaskRights, ready_policy::Probe,
    },
};

use super::{attempts, causes, spec, status, units};

/// Durations from here on stand for "no limit": a thousand years.
const NO_LIMIT: Duration = Duration::from_secs(1000 * 365 * 24 * 3600);

/// Names and values; a policy that does not apply is left out.
pub(crate) fn facts(task: &BackgroundTask) -> Vec<(&'static str, String)> {
    let mut facts = vec![("placement", placement(task).to_owned())];
    if let Some(detachment) = &task.detachment {
        let at = detachment.detach_time.map(units::timestamp);
        let (at, cause) = (at.unwrap_or_default(), causes::detach(detachment));
        facts.push(("detached", format!("{at} {cause}").trim_start().to_owned()));
    }
    if let Some(policy) = &spec::of(task).foreground {
        facts.push(("foreground", foreground(policy)));
        facts.push(("disconnect", disconnect(policy)));
    }
    facts.push(("orphans", orphans(spec::orphan_policy(task)).to_owned()));
    match rights(spec::of(task).rights()) {
        "" => {}
        rights => facts.push(("rights", rights.to_owned())),
    }
    for process in &task.abandoned {
        facts.push(("abandoned", format!("{} {}", process.pid, process.command)));
    }
    if let Some(span) = spec::of(task).idle_timeout {
        let span = units::duration(time::from_proto(span));
        facts.push(("idle timeout", format!("stopped after {span} of silence")));
    }
    if let Some(policy) = &spec::of(task).silence {
        facts.push(("stale", stale(task, policy)));
    }
    if let Some(policy) = &spec::of(task).output {
        facts.push(("output limit", output(policy)));
    }
    if let Some(limit) = &task.output_limit {
        facts.push(("dropped", dropped(limit)));
    }
    facts.push(("ready", ready(task)));
    facts.push(("restart", attempts::describe(task)));
    if let Some(terminal) = &spec::of(task).terminal {
        let (columns, rows) = (terminal.columns, terminal.rows);
        facts.push(("terminal", format!("{columns} columns, {rows} rows")));
    }
    if task.needs_input {
        facts.push(("input", "waits for it".to_owned()));
    }
    for (index, pattern) in spec::patterns(task).iter().enumerate() {
        facts.push(("pattern", searched(pattern, task.matches.get(index))));
    }
    if let Some(policy) = &spec::of(task).exclusive {
        facts.push(("exclusive", exclusive(policy)));
    }
    facts.push(("queue", spec::queue(task).to_owned()));
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

fn placement(task: &BackgroundTask) -> &'static str {
    match task.placement() {
        Placement::Unspecified => "",
        Placement::Background => "in the background",
        Placement::Foreground if status::is_finished(task) => "in the foreground until its end",
        Placement::Foreground => "in the foreground",
    }
}

fn foreground(policy: &ForegroundPolicy) -> String {
    let Some(span) = policy.timeout.map(time::from_proto) else {
        return String::new();
    };
    if span >= NO_LIMIT {
        return "no time limit".to_owned();
    }
    let action = match policy.on_timeout() {
        ForegroundTimeoutAction::Unspecified | ForegroundTimeoutAction::Detach => "detached",
        ForegroundTimeoutAction::Cancel => "stopped",
    };
    format!("for {}, then {action}", units::duration(span))
}

fn disconnect(policy: &ForegroundPolicy) -> String {
    let Some(window) = policy.reattach_window.map(time::from_proto) else {
        return String::new();
    };
    let after = units::duration(window);
    match policy.on_disconnect() {
        DisconnectAction::Unspecified | DisconnectAction::Cancel => {
            format!("stopped after {after}")
        }
        DisconnectAction::Detach => format!("detached after {after}"),
        DisconnectAction::Keep => "stays in the foreground".to_owned(),
    }
}

fn rights(rights: TaskRights) -> &'static str {
    match rights {
        // The default.
        TaskRights::Unspecified | TaskRights::Children => "",
        TaskRights::Report => "report on the task itself",
        TaskRights::None => "none",
        TaskRights::All => "every call",
    }
}

fn orphans(policy: OrphanPolicy) -> &'static str {
    match policy {
        OrphanPolicy::Unspecified => "",
        OrphanPolicy::Track => "tracked: the task runs until its last process exits",
        OrphanPolicy::Kill => "killed when the leader exits",
        OrphanPolicy::Abandon => "abandoned when the leader exits",
    }
}

fn stale(task: &BackgroundTask, policy: &SilencePolicy) -> String {
    let Some(span) = policy.stale_after.map(time::from_proto) else {
        return String::new();
    };
    let action = match policy.on_stale() {
        StaleAction::Unspecified | StaleAction::Notify => "",
        StaleAction::Cancel => ", then stopped",
    };
    let now = match task.stale {
        true => "; stale now",
        false => "",
    };
    format!("after {} of silence{action}{now}", units::duration(span))
}

fn output(policy: &OutputPolicy) -> String {
    let size = units::size(policy.max_bytes);
    match policy.on_limit() {
        OutputLimitAction::Unspecified | OutputLimitAction::Rotate => {
            let head = units::size(policy.head_bytes.unwrap_or_default());
            format!("{size}: the first {head} and the latest are kept")
        }
        OutputLimitAction::Truncate => format!("{size}, then dropped"),
        OutputLimitAction::Kill => format!("{size}, then killed"),
    }
}

/// The moment from which on output was dropped, and the rule.
pub(crate) fn dropped(limit: &OutputLimit) -> String {
    let rule = match limit.cause() {
        OutputLimitCause::Unspecified | OutputLimitCause::Policy => "the limit of the task",
        OutputLimitCause::ServerBudget => "the daemon's --max-output",
    };
    let at = limit.limit_time.map(units::timestamp).unwrap_or_default();
    let text = format!("{at} output from offset {} on, by {rule}", limit.offset);
    text.trim_start().to_owned()
}

/// The readiness and its rule, such as `pending: port 3000, within 30s`.
pub(crate) fn ready(task: &BackgroundTask) -> String {
    let now = match task.readiness() {
        Readiness::Unspecified => return String::new(),
        Readiness::Pending => "pending",
        Readiness::Ready => "yes",
        Readiness::NotReady => "no",
    };
    let policy = spec::of(task).ready.clone().unwrap_or_default();
    let probe = match &policy.probe {
        Some(Probe::Port(0)) => "any port".to_owned(),
        Some(Probe::Port(port)) => format!("port {port}"),
        Some(Probe::HttpUrl(url)) => url.clone(),
        Some(Probe::Command(command)) => command.args.join(" "),
        Some(Probe::Pattern(pattern)) => format!("a line with {pattern}"),
        None => return now.to_owned(),
    };
    let within = policy.timeout.map(time::from_proto);
    let within = within.map(|span| format!(", within {}", units::duration(span)));
    let action = match policy.on_timeout() {
        ReadyTimeoutAction::Unspecified | ReadyTimeoutAction::Notify => "",
        ReadyTimeoutAction::Cancel => " or stopped",
    };
    format!("{now}: {probe}{}{action}", within.unwrap_or_default())
}

/// A pattern and the lines that it has matched.
fn searched(pattern: &OutputPattern, matches: Option<&PatternMatches>) -> String {
    let count = matches.map_or(0, |matches| matches.count);
    let last = matches.and_then(|matches| matches.last_offset);
    let found = match (count, last) {
        (0, _) | (_, None) => "no line".to_owned(),
        (1, Some(offset)) => format!("1 line, at offset {offset}"),
        (count, Some(offset)) => format!("{count} lines, the latest at offset {offset}"),
    };
    format!("{}={}: {found}", pattern.name, pattern.regex)
}

fn exclusive(policy: &ExclusivePolicy) -> String {
    let key = &policy.key;
    match policy.mode() {
        ExclusiveMode::Unspecified => key.clone(),
        ExclusiveMode::Reject => format!("{key} (reject if another task has the key)"),
        ExclusiveMode::Replace => format!("{key} (replace the holder)"),
        ExclusiveMode::Queue => format!("{key} (queue behind the holder)"),
        ExclusiveMode::Ensure => format!("{key} (start unless an equal task has the key)"),
    }
}

#[cfg(test)]
mod tests {
    use heeler_client::v1::{AbandonedProcess, DetachCause, Detachment, TaskSpec, TaskState};

    use super::*;

    fn text(task: &BackgroundTask) -> String {
        let lines = facts(task);
        let lines = lines.iter().map(|(name, value)| format!("{name}: {value}"));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// F1, F4, F6
    #[test]
    fn a_foreground_task_shows_its_time_limit_and_the_disconnect_action() {
        let shown = |policy: ForegroundPolicy| {
            text(&BackgroundTask {
                spec: Some(TaskSpec {
                    foreground: Some(policy),
                    ..TaskSpec::default()
                }),
                state: TaskState::Running.into(),
                placement: Placement::Foreground.into(),
                ..BackgroundTask::default()
            })
        };
        let policy = ForegroundPolicy {
            timeout: Some(time::to_proto(Duration::from_secs(60))),
            reattach_window: Some(time::to_proto(Duration::from_secs(10))),
            ..ForegroundPolicy::default()
        };
        assert_eq!(
            shown(policy),
            "placement: in the foreground\nforeground: for 1m, then detached\n\
             disconnect: stopped after 10s"
        );
        let text = shown(ForegroundPolicy {
            timeout: Some(time::to_proto(Duration::MAX)),
            on_disconnect: DisconnectAction::Keep.into(),
            ..policy
        });
        assert!(text.contains("foreground: no time limit"), "{text}");
        assert!(text.contains("disconnect: stays"), "{text}");
    }

    /// O8
    #[test]
    fn the_limit_of_the_output_is_shown_with_its_effect() {
        let shown = |on_limit: OutputLimitAction, cause: OutputLimitCause| {
            text(&BackgroundTask {
                spec: Some(TaskSpec {
                    output: Some(OutputPolicy {
                        max_bytes: 64 << 20,
                        head_bytes: Some(1 << 20),
                        on_limit: on_limit.into(),
                        patterns: Vec::new(),
                    }),
                    ..TaskSpec::default()
                }),
                output_limit: Some(OutputLimit {
                    cause: cause.into(),
                    limit_time: None,
                    offset: 7,
                }),
                ..BackgroundTask::default()
            })
        };
        assert_eq!(
            shown(OutputLimitAction::Rotate, OutputLimitCause::Policy),
            "output limit: 64.0 MiB: the first 1.0 MiB and the latest are kept\n\
             dropped: output from offset 7 on, by the limit of the task"
        );
        let killed = shown(OutputLimitAction::Kill, OutputLimitCause::ServerBudget);
        assert!(killed.contains("64.0 MiB, then killed"), "{killed}");
        assert!(killed.contains("by the daemon's --max-output"), "{killed}");
    }

    /// O16
    #[test]
    fn a_pattern_is_shown_with_the_lines_that_it_has_matched() {
        let pattern = OutputPattern {
            name: "ready".to_owned(),
            regex: "Listening".to_owned(),
            ..OutputPattern::default()
        };
        let shown = |count: u64, last_offset: Option<u64>| {
            let matches = PatternMatches {
                count,
                last_offset,
                ..PatternMatches::default()
            };
            searched(&pattern, Some(&matches))
        };
        assert_eq!(shown(0, None), "ready=Listening: no line");
        assert_eq!(shown(1, Some(7)), "ready=Listening: 1 line, at offset 7");
        assert_eq!(
            shown(3, Some(9)),
            "ready=Listening: 3 lines, the latest at offset 9"
        );
    }

    /// F1, F11, T5
    #[test]
    fn the_effects_of_policies_are_shown() {
        let task = BackgroundTask {
            spec: Some(TaskSpec {
                orphan_policy: OrphanPolicy::Abandon.into(),
                silence: Some(SilencePolicy {
                    stale_after: Some(time::to_proto(Duration::from_secs(5))),
                    ..SilencePolicy::default()
                }),
                ..TaskSpec::default()
            }),
            placement: Placement::Background.into(),
            detachment: Some(Detachment {
                cause: DetachCause::ForegroundTimeout.into(),
                ..Detachment::default()
            }),
            abandoned: vec![AbandonedProcess {
                pid: 7,
                command: "sleep 9".to_owned(),
            }],
            stale: true,
            ..BackgroundTask::default()
        };
        let text = text(&task);
        for part in [
            "detached: foreground timeout",
            "abandoned: 7 sleep 9",
            "stale: after 5s of silence; stale now",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
