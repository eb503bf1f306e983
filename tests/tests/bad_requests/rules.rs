//! Spawn options of the foreground and of time: contradictions and invalid values.

use heeler_tests::{SpawnRequestExt as _, argv, secs, v1::*};

use super::{Call, Case, Edge, bad, bad_spans};

fn ok() -> SpawnRequest {
    argv(["true"])
}

fn spawn(field: &str, request: SpawnRequest) -> Case {
    bad(field, Call::Spawn(request))
}

/// S2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn contradictions_within_a_group_are_refused() {
    let no_window = |action| {
        let request = ok()
            .with_reattach_window(secs(0))
            .with_on_disconnect(action);
        spawn("spec.foreground.reattach_window", request)
    };
    let cases = vec![
        no_window(DisconnectAction::Unspecified),
        no_window(DisconnectAction::Cancel),
        no_window(DisconnectAction::Detach),
        spawn(
            "spec.silence.stale_after",
            ok().with_stale_action(StaleAction::Cancel),
        ),
    ];
    Edge::new().await.refuses(cases).await;
}

/// S2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn invalid_durations_and_unknown_enum_values_are_refused() {
    let mut cases = Vec::new();
    for span in bad_spans().into_iter().chain([secs(0)]) {
        cases.extend([
            spawn("spec.timeout", ok().with_timeout(span)),
            spawn("spec.idle_timeout", ok().with_idle_timeout(span)),
            spawn("spec.silence.stale_after", ok().with_stale_after(span)),
            spawn(
                "spec.foreground.reattach_window",
                ok().with_reattach_window(span),
            ),
            spawn(
                "spec.foreground.timeout",
                ok().with_foreground_timeout(span),
            ),
        ]);
    }
    cases.extend([
        spawn("spec.orphan_policy", ok().with_orphan_policy(9)),
        spawn(
            "spec.silence.on_stale",
            ok().with_stale_after(secs(1)).with_stale_action(-1),
        ),
        spawn("spec.foreground.on_disconnect", ok().with_on_disconnect(9)),
        spawn(
            "spec.foreground.on_timeout",
            ok().with_on_foreground_timeout(9),
        ),
    ]);
    Edge::new().await.refuses(cases).await;
}
