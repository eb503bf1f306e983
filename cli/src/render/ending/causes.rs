//! The causes of an end, a stop or a detach, with the client that asked for it and its reason.

use heeler_client::v1::{Actor, DetachCause, Detachment, EndReason, StopRecord, WorkCancel};

const UNKNOWN: &str = "a cause that this version of heeler does not know";

/// The reason why a task finished, or why it was asked to stop.
pub(crate) fn end_reason(reason: EndReason) -> &'static str {
    match reason {
        EndReason::Unspecified => UNKNOWN,
        EndReason::Exited => "it ended by itself",
        EndReason::Signalled => "a signal from outside heeler",
        EndReason::SpawnFailed => "it failed to start",
        EndReason::Cancelled => "cancel",
        EndReason::Replaced => "another task replaced it",
        EndReason::Timeout => "timeout",
        EndReason::IdleTimeout => "idle timeout",
        EndReason::NotReady => "not ready in time",
        EndReason::ClientDisconnected => "its client disconnected",
        EndReason::ServerShutdown => "the daemon shut down",
        EndReason::SupervisionLost => "supervision was lost",
        EndReason::OutputLimit => "it wrote too much output",
        EndReason::WorkerLost => "its worker was lost",
        EndReason::WorkerFailed => "its worker failed",
    }
}

/// The cause of a stop, such as `cancel by heeler cancel (uid 7): too slow`.
pub(crate) fn stop(stop: &StopRecord) -> String {
    with_actor(end_reason(stop.cause()), stop.actor.as_ref(), &stop.reason)
}

/// The cause of a request to stop, as that of a stop.
pub(crate) fn request(cancel: &WorkCancel) -> String {
    let cause = end_reason(cancel.cause());
    with_actor(cause, cancel.actor.as_ref(), &cancel.reason)
}

/// The cause of a detach, such as `detach by heeler detach (uid 7): too slow`.
pub(crate) fn detach(detachment: &Detachment) -> String {
    let cause = match detachment.cause() {
        DetachCause::Unspecified => UNKNOWN,
        DetachCause::Requested => "detach",
        DetachCause::ForegroundTimeout => return "foreground timeout".to_owned(),
        DetachCause::ClientDisconnected => return "its client disconnected".to_owned(),
    };
    with_actor(cause, detachment.actor.as_ref(), &detachment.reason)
}

fn with_actor(cause: &str, actor: Option<&Actor>, reason: &str) -> String {
    let mut text = cause.to_owned();
    if let Some(actor) = actor.filter(|actor| !is_daemon(actor)) {
        if !actor.name.is_empty() {
            text.push_str(&format!(" by {}", actor.name));
        }
        match (actor.uid, actor.pid) {
            (Some(uid), Some(pid)) => text.push_str(&format!(" (uid {uid}, pid {pid})")),
            (Some(uid), None) => text.push_str(&format!(" (uid {uid})")),
            (None, Some(pid)) => text.push_str(&format!(" (pid {pid})")),
            (None, None) => {}
        }
    }
    if !reason.is_empty() {
        text.push_str(&format!(": {reason}"));
    }
    text
}

/// Returns whether no client asked: the daemon applied a policy, and the cause names it.
fn is_daemon(actor: &Actor) -> bool {
    actor.name == "heeler" && actor.uid.is_none() && actor.pid.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F1
    #[test]
    fn a_detach_shows_its_actor_and_reason() {
        let shown = |cause: DetachCause| {
            detach(&Detachment {
                cause: cause.into(),
                actor: Some(Actor {
                    name: "heeler detach".to_owned(),
                    ..Actor::default()
                }),
                reason: "enough".to_owned(),
                ..Detachment::default()
            })
        };
        let requested = shown(DetachCause::Requested);
        assert_eq!(requested, "detach by heeler detach: enough");
        let timeout = shown(DetachCause::ForegroundTimeout);
        assert_eq!(timeout, "foreground timeout");
    }

    /// C11
    #[test]
    fn a_stop_by_the_daemons_own_policy_names_no_actor() {
        let shown = |cause: EndReason, actor: Actor| {
            stop(&StopRecord {
                cause: cause.into(),
                actor: Some(actor),
                ..StopRecord::default()
            })
        };
        let daemon = Actor {
            name: "heeler".to_owned(),
            ..Actor::default()
        };
        let person = Actor {
            uid: Some(7),
            ..daemon.clone()
        };
        assert_eq!(shown(EndReason::Timeout, daemon), "timeout");
        let cancel = shown(EndReason::Cancelled, person);
        assert_eq!(cancel, "cancel by heeler (uid 7)");
    }
}
