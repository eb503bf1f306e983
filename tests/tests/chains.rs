//! The worst tree there is: lineages that fork and exit without pause and do not listen.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener},
    },
    time::Duration,
};

use heeler_tests::{
    Daemon, Setting,
    api::cancel,
    containment, millis,
    v1::{CancelMode, CancelRequest, ListRequest, TaskState},
};

/// Makes a test of each function for each setting, which begins when no other is under way.
macro_rules! in_each_setting_alone {
    ($($behaviour:ident),* $(,)?) => { $(
        mod $behaviour {
            use super::{Setting, alone};

            fn on(setting: Setting, name: &str) {
                alone(setting, concat!(module_path!(), "::"), name, super::$behaviour);
            }

            #[test]
            fn on_cgroups() {
                on(Setting::Cgroup, "on_cgroups");
            }

            #[test]
            fn on_the_subreaper() {
                on(Setting::Subreaper, "on_the_subreaper");
            }

            #[test]
            fn on_an_unprivileged_user() {
                on(Setting::Unprivileged, "on_an_unprivileged_user");
            }
        }
    )* };
}

in_each_setting_alone! {
    runaway_chains_are_gone_and_the_server_stays_responsive,
    runaway_chains_with_a_session_each_are_gone,
}

/// Runs a test when it is the only one. The chains take the whole machine, at times down to the last
/// process number, so that another test could not even begin: it has no runtime before its turn.
fn alone(setting: Setting, module: &str, name: &str, behaviour: impl AsyncFnOnce(Daemon, Setting)) {
    // Who runs again as another user does so in the turn of the first.
    let _turn = (!containment::is_rerun()).then(turn);
    if setting == Setting::Unprivileged && containment::reruns_as_nobody(&format!("{module}{name}"))
    {
        return;
    }
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        if let Some(daemon) = setting.start().await {
            behaviour(daemon, setting).await;
        }
    });
}

/// A name that only one can have, and that goes with its holder.
fn turn() -> UnixListener {
    let name = SocketAddr::from_abstract_name("heeler-tests/chains").unwrap();
    loop {
        match UnixListener::bind_addr(&name) {
            Ok(held) => return held,
            Err(_) => std::thread::sleep(heeler_tests::waiting::STEP),
        }
    }
}

/// What a call may take while 64 processes compete for the CPU.
const RESPONSIVE: Duration = Duration::from_secs(10);

/// C5
async fn runaway_chains_are_gone_and_the_server_stays_responsive(daemon: Daemon, setting: Setting) {
    let api = daemon.api().await;
    let mut fixture = daemon
        .run(&api, "ignore TERM chains 64 plain pid ready forever")
        .await;
    fixture.process("ready").await;
    let cancelled = {
        let (api, grace) = (api.clone(), Some(millis(300)));
        let request = CancelRequest {
            grace,
            wait: true,
            ..cancel(&fixture.id)
        };
        tokio::spawn(async move { api.cancel_one(request).await })
    };
    let other = daemon.api().await;
    let mut calls = 0;
    while !cancelled.is_finished() || calls < 5 {
        let answer = tokio::time::timeout(RESPONSIVE, other.list(ListRequest::default())).await;
        answer.expect("a server that answers under load").unwrap();
        calls += 1;
    }
    let stopped = cancelled.await.unwrap();
    assert!(fixture.leash_is_loose(), "a chain goes on");
    fixture.assert_gone();
    let proof = stopped.proof.expect("a proof");
    assert_eq!(
        (proof.method(), proof.survivors.len()),
        (setting.proof(), 0)
    );
    assert_eq!(stopped.task.unwrap().state(), TaskState::Cancelled);
}

/// C5
async fn runaway_chains_with_a_session_each_are_gone(daemon: Daemon, setting: Setting) {
    let api = daemon.api().await;
    let mut fixture = daemon
        .run(&api, "ignore TERM chains 64 setsid pid ready forever")
        .await;
    fixture.process("ready").await;
    let stopped = api.stop(&fixture.id, CancelMode::Force).await;
    assert!(fixture.leash_is_loose(), "a chain goes on");
    fixture.assert_gone();
    let proof = stopped.proof.expect("a proof");
    assert_eq!(
        (proof.method(), proof.survivors.len()),
        (setting.proof(), 0)
    );
}
