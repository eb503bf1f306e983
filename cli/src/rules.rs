//! The rules of a task, and what has become of them, in words for people.

use std::time::Duration;

use heeler_client::{
    time,
    v1::{
        BackgroundTask, DisconnectAction, ExclusiveMode, ForegroundTimeoutAction, OrphanPolicy,
        Placement, StaleAction,
    },
};

use crate::{duration, words};

/// A thousand years: more than anybody waits, and less than what stands for no limit.
const FOR_EVER: Duration = Duration::from_secs(1000 * 365 * 24 * 3600);

/// Named facts; what does not apply is left out.
pub(crate) fn facts(task: &BackgroundTask) -> Vec<(&'static str, String)> {
    let mut facts = vec![("placement", placement(task).to_owned())];
    if let Some(detachment) = &task.detached {
        let at = detachment
            .detach_time
            .map(words::moment)
            .unwrap_or_default();
        facts.push((
            "detached",
            format!("{at} by {}", words::detached(detachment)),
        ));
    }
    facts.push(("foreground", foreground(task)));
    facts.push(("unheld", unheld(task)));
    facts.push((
        "orphan_policy",
        orphan_policy(task.orphan_policy()).to_owned(),
    ));
    for left in &task.abandoned_processes {
        facts.push(("left behind", format!("{} {}", left.pid, left.command)));
    }
    if let Some(span) = task.idle_timeout {
        let span = duration::precise(time::from_proto(span));
        facts.push(("idle", format!("stopped after {span} of silence")));
    }
    facts.push(("stale", stale(task)));
    facts.push(("exclusive", exclusive(task)));
    facts.push(("queue", task.queue.clone()));
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

fn placement(task: &BackgroundTask) -> &'static str {
    match task.placement() {
        Placement::Unspecified => "",
        Placement::Background => "in the background",
        Placement::Foreground if words::is_over(task) => "in the foreground, to its end",
        Placement::Foreground => "in the foreground",
    }
}

/// How long it may be in the foreground, and what follows.
fn foreground(task: &BackgroundTask) -> String {
    let Some(span) = task.foreground_timeout.map(time::from_proto) else {
        return String::new();
    };
    if span >= FOR_EVER {
        return "for as long as it takes".to_owned();
    }
    let then = match task.on_foreground_timeout() {
        ForegroundTimeoutAction::Unspecified | ForegroundTimeoutAction::Detach => "detached",
        ForegroundTimeoutAction::Cancel => "stopped",
    };
    format!("for {}, then {then}", duration::precise(span))
}

/// What follows when nobody holds it.
fn unheld(task: &BackgroundTask) -> String {
    let Some(window) = task.reattach_window.map(time::from_proto) else {
        return String::new();
    };
    let after = duration::precise(window);
    match task.on_disconnect() {
        DisconnectAction::Unspecified | DisconnectAction::Cancel => {
            format!("stopped after {after}")
        }
        DisconnectAction::Detach => format!("detached after {after}"),
        DisconnectAction::Keep => "stays in the foreground".to_owned(),
    }
}

fn orphan_policy(policy: OrphanPolicy) -> &'static str {
    match policy {
        OrphanPolicy::Unspecified => "",
        OrphanPolicy::Track => "it goes on until its last process is gone",
        OrphanPolicy::Kill => "what outlives its leader is killed",
        OrphanPolicy::Abandon => "what outlives its leader is left to itself",
    }
}

fn stale(task: &BackgroundTask) -> String {
    let Some(span) = task.stale_after.map(time::from_proto) else {
        return String::new();
    };
    let then = match task.stale_action() {
        StaleAction::Unspecified | StaleAction::Notify => "",
        StaleAction::Cancel => ", and then stopped",
    };
    let now = match task.stale {
        true => "; it is now",
        false => "",
    };
    format!("after {} of silence{then}{now}", duration::precise(span))
}

fn exclusive(task: &BackgroundTask) -> String {
    let key = &task.exclusive_key;
    match task.exclusive_mode() {
        ExclusiveMode::Unspecified => key.clone(),
        ExclusiveMode::Reject => format!("{key}, refused where another has it"),
        ExclusiveMode::Replace => format!("{key}, in place of whoever has it"),
        ExclusiveMode::Queue => format!("{key}, after those who have it"),
    }
}

#[cfg(test)]
mod tests {
    use heeler_client::v1::{AbandonedProcess, DetachCause, Detachment, TaskState};

    use super::*;

    fn text(task: &BackgroundTask) -> String {
        let lines = facts(task);
        let lines = lines.iter().map(|(name, value)| format!("{name}: {value}"));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// F1, F4, F6
    #[test]
    fn a_foreground_task_says_how_long_and_what_follows() {
        let mut task = BackgroundTask {
            state: TaskState::Running.into(),
            placement: Placement::Foreground.into(),
            foreground_timeout: Some(time::to_proto(Duration::from_secs(60))),
            reattach_window: Some(time::to_proto(Duration::from_secs(10))),
            ..BackgroundTask::default()
        };
        assert_eq!(
            text(&task),
            "placement: in the foreground\nforeground: for 1m, then detached\nunheld: stopped after 10s"
        );
        task.foreground_timeout = Some(time::to_proto(Duration::MAX));
        task.on_disconnect = DisconnectAction::Keep.into();
        let text = text(&task);
        assert!(text.contains("for as long as it takes"), "{text}");
        assert!(text.contains("unheld: stays"), "{text}");
    }

    /// F1, F11, T5
    #[test]
    fn what_has_become_of_the_rules_is_told() {
        let task = BackgroundTask {
            placement: Placement::Background.into(),
            detached: Some(Detachment {
                cause: DetachCause::ForegroundTimeout.into(),
                ..Detachment::default()
            }),
            orphan_policy: OrphanPolicy::Abandon.into(),
            abandoned_processes: vec![AbandonedProcess {
                pid: 7,
                command: "sleep 9".to_owned(),
            }],
            stale_after: Some(time::to_proto(Duration::from_secs(5))),
            stale: true,
            ..BackgroundTask::default()
        };
        let text = text(&task);
        for part in [
            "by its foreground timeout",
            "left behind: 7 sleep 9",
            "stale: after 5s of silence; it is now",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
