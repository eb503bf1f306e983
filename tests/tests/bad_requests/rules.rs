//! The foreground and time: rules that contradict each other, or could never come true.

use heeler_tests::{argv, foreground, secs, v1::*};

use super::{Call, Case, Edge, bad, bad_spans};

fn ok() -> SpawnRequest {
    argv(["true"])
}

fn spawn(field: &str, request: SpawnRequest) -> Case {
    bad(field, Call::Spawn(request))
}

/// S2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn rules_for_the_foreground_are_refused_in_the_background() {
    let cases = vec![
        spawn(
            "foreground_timeout",
            SpawnRequest {
                foreground_timeout: Some(secs(5)),
                ..ok()
            },
        ),
        spawn(
            "on_foreground_timeout",
            SpawnRequest {
                on_foreground_timeout: ForegroundTimeoutAction::Cancel.into(),
                ..ok()
            },
        ),
        spawn(
            "on_disconnect",
            SpawnRequest {
                on_disconnect: DisconnectAction::Keep.into(),
                ..ok()
            },
        ),
        spawn(
            "reattach_window",
            SpawnRequest {
                placement: Placement::Background.into(),
                reattach_window: Some(secs(5)),
                ..ok()
            },
        ),
        spawn(
            "stale_action",
            SpawnRequest {
                stale_action: StaleAction::Cancel.into(),
                ..ok()
            },
        ),
    ];
    Edge::new().await.refuses(cases).await;
}

/// S2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn spans_that_are_none_and_values_that_nobody_knows_are_refused() {
    let mut cases = Vec::new();
    for span in bad_spans().into_iter().chain([secs(0)]) {
        let span = Some(span);
        let held = || foreground(ok());
        cases.extend([
            spawn(
                "timeout",
                SpawnRequest {
                    timeout: span,
                    ..ok()
                },
            ),
            spawn(
                "idle_timeout",
                SpawnRequest {
                    idle_timeout: span,
                    ..ok()
                },
            ),
            spawn(
                "stale_after",
                SpawnRequest {
                    stale_after: span,
                    ..ok()
                },
            ),
            spawn(
                "reattach_window",
                SpawnRequest {
                    reattach_window: span,
                    ..held()
                },
            ),
            spawn(
                "foreground_timeout",
                SpawnRequest {
                    foreground_timeout: span,
                    ..held()
                },
            ),
        ]);
    }
    cases.extend([
        spawn(
            "placement",
            SpawnRequest {
                placement: 9,
                ..ok()
            },
        ),
        spawn(
            "orphan_policy",
            SpawnRequest {
                orphan_policy: 9,
                ..ok()
            },
        ),
        spawn(
            "stale_action",
            SpawnRequest {
                stale_action: -1,
                ..ok()
            },
        ),
        spawn(
            "on_disconnect",
            SpawnRequest {
                on_disconnect: 9,
                ..ok()
            },
        ),
        spawn(
            "on_foreground_timeout",
            SpawnRequest {
                on_foreground_timeout: 9,
                ..ok()
            },
        ),
    ]);
    Edge::new().await.refuses(cases).await;
}
