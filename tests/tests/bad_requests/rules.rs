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
async fn foreground_options_are_refused_in_the_background() {
    let cases = vec![
        spawn("foreground_timeout", ok().with_foreground_timeout(secs(5))),
        spawn(
            "on_foreground_timeout",
            ok().with_on_foreground_timeout(ForegroundTimeoutAction::Cancel),
        ),
        spawn(
            "on_disconnect",
            ok().with_on_disconnect(DisconnectAction::Keep),
        ),
        spawn(
            "reattach_window",
            ok().with_placement(Placement::Background)
                .with_reattach_window(secs(5)),
        ),
        spawn("stale_action", ok().with_stale_action(StaleAction::Cancel)),
    ];
    Edge::new().await.refuses(cases).await;
}

/// S2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn invalid_durations_and_unknown_enum_values_are_refused() {
    let mut cases = Vec::new();
    for span in bad_spans().into_iter().chain([secs(0)]) {
        let foreground = || ok().in_foreground();
        cases.extend([
            spawn("timeout", ok().with_timeout(span)),
            spawn("idle_timeout", ok().with_idle_timeout(span)),
            spawn("stale_after", ok().with_stale_after(span)),
            spawn("reattach_window", foreground().with_reattach_window(span)),
            spawn(
                "foreground_timeout",
                foreground().with_foreground_timeout(span),
            ),
        ]);
    }
    cases.extend([
        spawn("placement", ok().with_placement(9)),
        spawn("orphan_policy", ok().with_orphan_policy(9)),
        spawn("stale_action", ok().with_stale_action(-1)),
        spawn("on_disconnect", ok().with_on_disconnect(9)),
        spawn("on_foreground_timeout", ok().with_on_foreground_timeout(9)),
    ]);
    Edge::new().await.refuses(cases).await;
}
