//! Restart policies that are refused.

use heeler_tests::{SpawnRequestExt as _, argv, millis, secs, v1::*};

use super::{Call, Case, Edge, bad, bad_spans};

fn with(change: impl FnOnce(&mut RestartPolicy)) -> SpawnRequest {
    let mut request = argv(["true"]);
    let mut policy = RestartPolicy::default();
    change(&mut policy);
    request.spec.as_mut().unwrap().restart = Some(policy);
    request
}

fn spawn(field: &str, request: SpawnRequest) -> Case {
    bad(field, Call::Spawn(request))
}

/// S2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn invalid_restart_policies_are_named() {
    let mut cases = Vec::new();
    for span in bad_spans() {
        cases.extend([
            spawn(
                "spec.restart.delay",
                with(|policy| policy.delay = Some(span)),
            ),
            spawn(
                "spec.restart.max_delay",
                with(|policy| policy.max_delay = Some(span)),
            ),
            spawn(
                "spec.restart.reset_after",
                with(|policy| policy.reset_after = Some(span)),
            ),
        ]);
    }
    let shorter = |policy: &mut RestartPolicy| {
        (policy.delay, policy.max_delay) = (Some(secs(2)), Some(secs(1)));
    };
    cases.extend([
        spawn(
            "spec.restart.delay",
            with(|policy| policy.delay = Some(millis(19))),
        ),
        spawn("spec.restart.max_delay", with(shorter)),
        spawn(
            "spec.restart.reset_after",
            with(|policy| policy.reset_after = Some(secs(0))),
        ),
        spawn("spec.restart", with(|_| {}).in_foreground()),
    ]);
    Edge::new().await.refuses(cases).await;
}
