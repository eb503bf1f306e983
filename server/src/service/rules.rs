//! The rules of a task, in and out: each is checked by itself, and that no two contradict each other.

use std::time::Duration;

use heeler_proto::v1;

use super::{check, convert::duration, refusal::Refusal};
use crate::task::{
    DEFAULT_FOREGROUND_TIMEOUT, DEFAULT_REATTACH_WINDOW, Exclusive, ExclusiveMode, Foreground,
    OnDisconnect, OnForegroundTimeout, OrphanPolicy, Placement, Rules, Stale, StaleAction, Task,
};

/// The rules that a request asks for.
pub(super) fn read(request: &v1::SpawnRequest) -> Result<Rules, Refusal> {
    let queue = check::text("queue", request.queue.clone(), check::SHORT_TEXT)?;
    let queue = (!queue.is_empty()).then_some(queue);
    let exclusive = exclusive(request)?;
    let replaces =
        |exclusive: &Exclusive| matches!(exclusive.mode, ExclusiveMode::Replace if queue.is_some());
    if exclusive.as_ref().is_some_and(replaces) {
        return Err(Refusal::field(
            "exclusive_mode",
            "cannot be REPLACE together with queue: what replaces another does not wait for others",
        ));
    }
    Ok(Rules {
        foreground: foreground(request)?,
        orphan_policy: orphan_policy(check::enumerated("orphan_policy", request.orphan_policy)?),
        idle_timeout: span("idle_timeout", request.idle_timeout)?,
        stale: stale(request)?,
        exclusive,
        queue,
    })
}

fn foreground(request: &v1::SpawnRequest) -> Result<Option<Foreground>, Refusal> {
    let placement = check::enumerated("placement", request.placement)?;
    let on_timeout = check::enumerated("on_foreground_timeout", request.on_foreground_timeout)?;
    let on_disconnect = check::enumerated("on_disconnect", request.on_disconnect)?;
    match placement {
        v1::Placement::Unspecified | v1::Placement::Background => {
            let given = [
                ("foreground_timeout", request.foreground_timeout.is_some()),
                (
                    "on_foreground_timeout",
                    on_timeout != v1::ForegroundTimeoutAction::Unspecified,
                ),
                (
                    "on_disconnect",
                    on_disconnect != v1::DisconnectAction::Unspecified,
                ),
                ("reattach_window", request.reattach_window.is_some()),
            ];
            match given.into_iter().find(|(_, given)| *given) {
                Some((field, _)) => Err(Refusal::field(
                    field,
                    "is for foreground tasks, and placement is BACKGROUND",
                )),
                None => Ok(None),
            }
        }
        v1::Placement::Foreground => Ok(Some(Foreground {
            timeout: span("foreground_timeout", request.foreground_timeout)?
                .unwrap_or(DEFAULT_FOREGROUND_TIMEOUT),
            on_timeout: match on_timeout {
                v1::ForegroundTimeoutAction::Unspecified | v1::ForegroundTimeoutAction::Detach => {
                    OnForegroundTimeout::Detach
                }
                v1::ForegroundTimeoutAction::Cancel => OnForegroundTimeout::Cancel,
            },
            on_disconnect: match on_disconnect {
                v1::DisconnectAction::Unspecified | v1::DisconnectAction::Cancel => {
                    OnDisconnect::Cancel
                }
                v1::DisconnectAction::Detach => OnDisconnect::Detach,
                v1::DisconnectAction::Keep => OnDisconnect::Keep,
            },
            reattach_window: reattach_window(request, on_disconnect)?,
        })),
    }
}

/// Without any, nobody could come in time.
fn reattach_window(
    request: &v1::SpawnRequest,
    on_disconnect: v1::DisconnectAction,
) -> Result<Duration, Refusal> {
    let window = request
        .reattach_window
        .map(|window| check::duration("reattach_window", window))
        .transpose()?
        .unwrap_or(DEFAULT_REATTACH_WINDOW);
    match on_disconnect {
        v1::DisconnectAction::Keep => Ok(window),
        v1::DisconnectAction::Unspecified
        | v1::DisconnectAction::Cancel
        | v1::DisconnectAction::Detach
            if window.is_zero() =>
        {
            let problem = "is zero: nobody could hold the task in time";
            Err(Refusal::field("reattach_window", problem))
        }
        v1::DisconnectAction::Unspecified
        | v1::DisconnectAction::Cancel
        | v1::DisconnectAction::Detach => Ok(window),
    }
}

fn orphan_policy(orphan_policy: v1::OrphanPolicy) -> OrphanPolicy {
    match orphan_policy {
        v1::OrphanPolicy::Unspecified | v1::OrphanPolicy::Track => OrphanPolicy::Track,
        v1::OrphanPolicy::Kill => OrphanPolicy::Kill,
        v1::OrphanPolicy::Abandon => OrphanPolicy::Abandon,
    }
}

fn stale(request: &v1::SpawnRequest) -> Result<Option<Stale>, Refusal> {
    let action = check::enumerated("stale_action", request.stale_action)?;
    let Some(after) = span("stale_after", request.stale_after)? else {
        return match action {
            v1::StaleAction::Unspecified => Ok(None),
            v1::StaleAction::Notify | v1::StaleAction::Cancel => Err(Refusal::field(
                "stale_action",
                "goes with stale_after, which is absent",
            )),
        };
    };
    let action = match action {
        v1::StaleAction::Unspecified | v1::StaleAction::Notify => StaleAction::Notify,
        v1::StaleAction::Cancel => StaleAction::Cancel,
    };
    Ok(Some(Stale { after, action }))
}

fn exclusive(request: &v1::SpawnRequest) -> Result<Option<Exclusive>, Refusal> {
    let key = check::text(
        "exclusive_key",
        request.exclusive_key.clone(),
        check::SHORT_TEXT,
    )?;
    let mode = check::enumerated("exclusive_mode", request.exclusive_mode)?;
    if key.is_empty() {
        return match mode {
            v1::ExclusiveMode::Unspecified => Ok(None),
            v1::ExclusiveMode::Reject | v1::ExclusiveMode::Replace | v1::ExclusiveMode::Queue => {
                Err(Refusal::field(
                    "exclusive_mode",
                    "goes with exclusive_key, which is empty",
                ))
            }
        };
    }
    let mode = match mode {
        v1::ExclusiveMode::Unspecified | v1::ExclusiveMode::Reject => ExclusiveMode::Reject,
        v1::ExclusiveMode::Replace => ExclusiveMode::Replace,
        v1::ExclusiveMode::Queue => ExclusiveMode::Queue,
    };
    Ok(Some(Exclusive { key, mode }))
}

/// A span of time in which something can happen.
pub(super) fn span(
    field: &str,
    value: Option<prost_types::Duration>,
) -> Result<Option<Duration>, Refusal> {
    let span = value
        .map(|value| check::duration(field, value))
        .transpose()?;
    match span {
        Some(Duration::ZERO) => Err(Refusal::field(field, "is zero: it would be over at once")),
        span => Ok(span),
    }
}

/// Lays a task's rules, and what has become of them, over its description.
pub(super) fn show(task: &Task, shown: &mut v1::BackgroundTask) {
    let rules = &task.spec.rules;
    shown.placement = match task.placement() {
        Placement::Background => v1::Placement::Background,
        Placement::Foreground => v1::Placement::Foreground,
    }
    .into();
    if let Some(foreground) = &rules.foreground {
        show_foreground(foreground, shown);
    }
    shown.orphan_policy = match rules.orphan_policy {
        OrphanPolicy::Track => v1::OrphanPolicy::Track,
        OrphanPolicy::Kill => v1::OrphanPolicy::Kill,
        OrphanPolicy::Abandon => v1::OrphanPolicy::Abandon,
    }
    .into();
    shown.idle_timeout = rules.idle_timeout.map(duration);
    if let Some(stale) = rules.stale {
        shown.stale_after = Some(duration(stale.after));
        shown.stale_action = match stale.action {
            StaleAction::Notify => v1::StaleAction::Notify,
            StaleAction::Cancel => v1::StaleAction::Cancel,
        }
        .into();
    }
    shown.stale = task.stale.is_some();
    if let Some(exclusive) = &rules.exclusive {
        shown.exclusive_key = exclusive.key.clone();
        shown.exclusive_mode = match exclusive.mode {
            ExclusiveMode::Reject => v1::ExclusiveMode::Reject,
            ExclusiveMode::Replace => v1::ExclusiveMode::Replace,
            ExclusiveMode::Queue => v1::ExclusiveMode::Queue,
        }
        .into();
    }
    shown.queue = rules.queue.clone().unwrap_or_default();
}

fn show_foreground(foreground: &Foreground, shown: &mut v1::BackgroundTask) {
    shown.foreground_timeout = Some(duration(foreground.timeout));
    shown.on_foreground_timeout = match foreground.on_timeout {
        OnForegroundTimeout::Detach => v1::ForegroundTimeoutAction::Detach,
        OnForegroundTimeout::Cancel => v1::ForegroundTimeoutAction::Cancel,
    }
    .into();
    shown.on_disconnect = match foreground.on_disconnect {
        OnDisconnect::Cancel => v1::DisconnectAction::Cancel,
        OnDisconnect::Detach => v1::DisconnectAction::Detach,
        OnDisconnect::Keep => v1::DisconnectAction::Keep,
    }
    .into();
    shown.reattach_window = Some(duration(foreground.reattach_window));
}
