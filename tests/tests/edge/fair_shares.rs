//! Clients that begin many calls and do not complete them.

use heeler_tests::{
    Daemon, Refusal, SpawnRequestExt as _,
    daemon::SERVICE,
    exclusive, http2,
    http2::{Connection, WIDE},
    request::wait,
    secs,
    v1::*,
    waiting::STEP,
    within,
};
use tokio::task::JoinSet;
use tonic::{
    Code, Request, Status,
    metadata::{Ascii, MetadataValue},
};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use crate::all_is_served;

/// More calls than the daemon serves at a time.
const MANY: usize = 600;

const HEALTH_WATCH: &str = "grpc.health.v1.Health/Watch";

/// A health check over a connection of its own, which counts as another client.
async fn health_is_answered(daemon: &Daemon) {
    let token: MetadataValue<Ascii> = format!("Bearer {}", daemon.token()).parse().unwrap();
    let mut request = Request::new(HealthCheckRequest {
        service: SERVICE.to_owned(),
    });
    request.metadata_mut().insert("authorization", token);
    let mut health = HealthClient::new(daemon.tcp_channel().await);
    within("a health check", health.check(request))
        .await
        .unwrap();
}

fn on_both() -> heeler_tests::daemon::Builder {
    Daemon::builder().also_on("tcp:127.0.0.1:0")
}

/// N3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_open_calls_take_no_place_and_are_refused_after_a_while() {
    let daemon = on_both().start().await;
    let mut connection = Connection::open(&daemon.socket(), WIDE).await;
    let mut half_open = JoinSet::new();
    let mut bodies = Vec::new();
    for method in ["List", "Spawn", "Inspect"].iter().cycle().take(MANY) {
        let (answer, body) = connection.begin(method).await;
        half_open.spawn(answer);
        bodies.push(body);
    }
    health_is_answered(&daemon).await;
    all_is_served(&daemon).await;
    for answer in within("the answers", half_open.join_all()).await {
        let status = http2::status(answer.unwrap()).await;
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
        assert_eq!(Refusal::of(&status).reason, "REQUEST_UNREADABLE");
    }
}

/// N3: a share is taken by the announced size.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_longer_than_its_prefix_says_is_refused() {
    let daemon = Daemon::start().await;
    let mut connection = Connection::open(&daemon.socket(), WIDE).await;
    for (announced, sent) in [(0, 1), (10, 11), (10, 20_000)] {
        let long = vec![0; sent];
        let status = connection.send_announced("List", announced, &long).await;
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        let refusal = Refusal::of(&status);
        assert_eq!(refusal.reason, "REQUEST_UNREADABLE", "{status:?}");
    }
    all_is_served(&daemon).await;
}

/// N3, X1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spawns_that_wait_for_a_replaced_task_keep_no_short_call_waiting() {
    let daemon = on_both().start().await;
    let api = daemon.api().await;
    let request =
        exclusive("k", ExclusiveMode::Reject, SpawnRequest::default()).with_grace(secs(200));
    let holder = daemon
        .run_as(&api, request, "ignore TERM pid ready forever")
        .await;
    holder.process("ready").await;
    let replace = exclusive("k", ExclusiveMode::Replace, daemon.script("forever"));
    let replace = replace.with_request_id("the same");
    let mut connection = Connection::open(&daemon.socket(), WIDE).await;
    let mut waiting = JoinSet::new();
    for _ in 0..MANY {
        waiting.spawn(connection.send("Spawn", &replace).await);
    }
    api.until(&holder.id, TaskState::Stopping).await;
    health_is_answered(&daemon).await;
    all_is_served(&daemon).await;
    // The same client is served as well: its Spawns are long calls by now.
    within("a list", api.list(ListRequest::default()))
        .await
        .unwrap();
    api.kill(&holder.id).await;
    for answer in within("the starts", waiting.join_all()).await {
        let status = http2::status(answer.unwrap()).await;
        assert_eq!(status.code(), Code::Ok, "{status:?}");
    }
}

/// N3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waits_of_one_client_leave_places_for_others() {
    let daemon = on_both().start().await;
    let api = daemon.api().await;
    let task = api.start(daemon.script("forever")).await;
    let mut connection = Connection::open(&daemon.socket(), WIDE).await;
    let mut waits = JoinSet::new();
    for _ in 0..16 * 1024 {
        waits.spawn(connection.send("Wait", &wait([&task.id])).await);
    }
    let refused = within("a refusal", waits.join_next()).await;
    let refused = http2::status(refused.unwrap().unwrap().unwrap()).await;
    let refusal = Refusal::expect(
        Err::<(), _>(refused),
        Code::ResourceExhausted,
        "TOO_MANY_CALLS",
    );
    assert_eq!(refusal.value("max"), "16384");
    health_is_answered(&daemon).await;
    all_is_served(&daemon).await;
    // The same client can still stop the task, which ends all its waits.
    within("the cancel", api.kill(&task.id)).await;
    let mut answered = 0;
    while let Some(answer) = within("the answers", waits.join_next()).await {
        let status = http2::status(answer.unwrap().unwrap()).await;
        answered += usize::from(status.code() == Code::Ok);
    }
    assert!(answered > 8_000, "{answered}");
}

/// N3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_of_the_health_service_are_counted_and_leave_places_for_others() {
    let daemon = on_both().start().await;
    let request = HealthCheckRequest {
        service: SERVICE.to_owned(),
    };
    let mut connection = Connection::open(&daemon.socket(), WIDE).await;
    let mut answers = Vec::new();
    for _ in 0..9 * 1024 {
        answers.push(connection.send_to(HEALTH_WATCH, &request).await);
    }
    let (mut watches, mut refused) = (Vec::new(), Vec::new());
    for answer in answers {
        let answer = within("an answer", answer).await.unwrap();
        match answer.headers().contains_key(Status::GRPC_STATUS) {
            true => refused.push(answer),
            false => watches.push(answer),
        }
    }
    assert_eq!(watches.len(), 8 * 1024, "half of the places");
    let refused = Err::<(), _>(http2::status(refused.remove(0)).await);
    Refusal::expect(refused, Code::ResourceExhausted, "TOO_MANY_CALLS");
    health_is_answered(&daemon).await;
    all_is_served(&daemon).await;
    // The client gets its places back.
    drop(watches);
    let mut health = HealthClient::new(daemon.api().await.channel());
    let watched_again = async {
        while health.watch(request.clone()).await.is_err() {
            tokio::time::sleep(STEP).await;
        }
    };
    within("a place", watched_again).await;
}

/// N3, S2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_undecodable_request_is_a_bad_request_and_changes_nothing() {
    let daemon = Daemon::start().await;
    let mut connection = Connection::open(&daemon.socket(), WIDE).await;
    for method in ["Spawn", "List", "Cancel", "Wait", "WatchEvents", "Attach"] {
        // A field of 100 bytes of which there are two.
        let status = connection.send_bytes(method, &[0x0a, 100, 1, 2]).await;
        let refusal = Refusal::of(&status);
        let found = (refusal.code, refusal.reason.as_str());
        let expected = (Code::InvalidArgument, "REQUEST_UNREADABLE");
        assert_eq!(found, expected, "{method}: {refusal:?}");
        let (answer, mut body) = connection.begin(method).await;
        body.send_data(Default::default(), true).unwrap();
        let status = http2::status(answer.await.unwrap()).await;
        assert_eq!(Refusal::of(&status).reason, "REQUEST_UNREADABLE");
    }
    assert_eq!(daemon.api().await.all().await, []);
}
