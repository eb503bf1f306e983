//! Exclusive keys and queues.

use heeler_tests::{
    Daemon, SpawnRequestExt as _, TaskSpecExt as _, argv, exclusive, queued, v1::*,
};

use super::{Call, Edge, bad, text};

/// S2, X1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn invalid_keys_and_queues_of_spawn_are_named() {
    let ok = || argv(["true"]);
    let spawn = |field: &str, request| bad(field, Call::Spawn(request));
    let mode_alone = |mode: i32| ok().with_exclusive_mode(mode);
    let replace = exclusive("k", ExclusiveMode::Replace, ok());
    let cases = vec![
        spawn("spec.queue", queued(&text(257), ok())),
        spawn(
            "spec.exclusive.key",
            exclusive(&text(257), ExclusiveMode::Queue, ok()),
        ),
        spawn(
            "spec.exclusive.key",
            mode_alone(ExclusiveMode::Reject.into()),
        ),
        spawn(
            "spec.exclusive.key",
            mode_alone(ExclusiveMode::Queue.into()),
        ),
        spawn("spec.exclusive.mode", mode_alone(99)),
        spawn("spec.exclusive.mode", mode_alone(-1)),
        spawn("spec.exclusive.mode", queued("q", replace)),
    ];
    Edge::new().await.refuses(cases).await;
}

/// S2, X1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn invalid_fields_of_update_queue_are_named() {
    let update = |field: &str, name: &str, slots| {
        let request = UpdateQueueRequest {
            name: name.to_owned(),
            slots,
            paused: Some(true),
        };
        bad(field, Call::UpdateQueue(request))
    };
    let cases = vec![
        update("name", "", Some(1)),
        update("name", &text(257), Some(1)),
        update("slots", "q", Some(0)),
        update("slots", "q", Some(10_001)),
        update("slots", "q", Some(u32::MAX)),
    ];
    Edge::new().await.refuses(cases).await;
}

/// S10, X1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn hostile_keys_and_queue_names_are_stored_as_data() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let names = [
        "../../etc",
        "a\nb\0c",
        "\x1b[2J",
        "'; DROP TABLE queues",
        "ü\u{202e}x",
        &text(256),
    ];
    for name in names {
        api.set_queue(name, Some(7), Some(true)).await.unwrap();
        let request = exclusive(name, ExclusiveMode::Queue, queued(name, argv(["true"])));
        let task = api.start(request).await;
        assert_eq!((task.queue(), task.exclusive_key()), (name, name));
    }
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    let mut expected: Vec<&str> = names.into();
    expected.sort_unstable();
    let queues = api.queues().await;
    let found: Vec<&str> = queues.iter().map(|queue| queue.name.as_str()).collect();
    assert_eq!(found, expected, "not ordered by name");
    assert!(
        queues
            .iter()
            .all(|queue| queue.slots == 7 && queue.waiting == 1)
    );
    for name in names {
        api.set_queue(name, Some(1), Some(false)).await.unwrap();
    }
    for task in api.all().await {
        assert_eq!(api.ended(&task.id).await.state(), TaskState::Completed);
    }
    assert_eq!(api.queues().await, []);
    assert!(!daemon.log().contains('\x1b'));
}
