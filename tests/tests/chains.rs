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
    Daemon, Rung,
    api::cancel,
    millis, on_each_rung,
    v1::{CancelMode, CancelRequest, ListRequest, TaskState},
};

on_each_rung! {
    runaway_chains_are_gone_and_the_server_stays_responsive,
    runaway_chains_with_a_session_each_are_gone,
}

/// The chains take the whole machine, so that two such tests would measure one another. A name that
/// only one can have, also among processes of different users, and that goes with its holder.
async fn alone() -> UnixListener {
    let name = SocketAddr::from_abstract_name("heeler-tests/chains").unwrap();
    loop {
        match UnixListener::bind_addr(&name) {
            Ok(held) => return held,
            Err(_) => tokio::time::sleep(heeler_tests::waiting::STEP).await,
        }
    }
}

/// What a call may take while 64 processes compete for the CPU.
const RESPONSIVE: Duration = Duration::from_secs(10);

/// C5
async fn runaway_chains_are_gone_and_the_server_stays_responsive(daemon: Daemon, rung: Rung) {
    let _alone = alone().await;
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
    assert_eq!((proof.method(), proof.survivors.len()), (rung.proof(), 0));
    assert_eq!(stopped.task.unwrap().state(), TaskState::Cancelled);
}

/// C5
async fn runaway_chains_with_a_session_each_are_gone(daemon: Daemon, rung: Rung) {
    let _alone = alone().await;
    let api = daemon.api().await;
    let mut fixture = daemon
        .run(&api, "ignore TERM chains 64 setsid pid ready forever")
        .await;
    fixture.process("ready").await;
    let stopped = api.stop(&fixture.id, CancelMode::Force).await;
    assert!(fixture.leash_is_loose(), "a chain goes on");
    fixture.assert_gone();
    let proof = stopped.proof.expect("a proof");
    assert_eq!((proof.method(), proof.survivors.len()), (rung.proof(), 0));
}
