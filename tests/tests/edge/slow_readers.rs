//! Clients that do not read what they have asked for.

use heeler_tests::{
    Api, Daemon, history::after, http2::Connection, process::memory, request::read, v1::*, within,
};
use tokio::task::JoinSet;

use crate::{all_is_served, past, served};

const MIB: u64 = 1 << 20;

/// E7, L7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paused_watchers_of_a_long_past_delay_no_replay_no_list_and_no_retention() {
    const TASKS: usize = 12_400;
    let mut daemon = Daemon::builder()
        .arg(format!("--keep-finished={TASKS}"))
        .arg("--keep-events=1000000")
        .prepare();
    past::write(&daemon.state_dir(), TASKS).await;
    daemon.restart().await;
    let mut paused = JoinSet::new();
    for _ in 0..12 {
        let api = daemon.api().await;
        paused.spawn(async move { api.raw().watch_events(after(0)).await.unwrap() });
    }
    let _paused = within("the streams begin", paused.join_all()).await;

    let api = daemon.api().await;
    let newest = api.revision().await;
    assert!(newest > 36_000, "{newest}");
    for _ in 0..3 {
        let mut replay = api.watch_after(0).await;
        let events = within("a replay", replay.up_to(newest)).await;
        assert_eq!(events.len() as u64, newest);
        let page = ListRequest {
            include_finished: true,
            page_size: 1000,
            ..Default::default()
        };
        let page = within("a list", api.list(page)).await.unwrap();
        assert_eq!(page.tasks.len(), 1000);
    }
    served(&daemon, &["ps", "-a"]).await;
    retention_goes_on(&daemon, &api).await;
}

/// Finished tasks beyond the limit are removed.
async fn retention_goes_on(daemon: &Daemon, api: &Api) {
    let removals = WatchEventsRequest {
        types: vec![TaskEventType::Removed.into()],
        ..Default::default()
    };
    let mut removals = api.watch(removals).await.unwrap();
    const MORE: usize = 10;
    for _ in 0..MORE {
        let task = api.start(daemon.script("exit 0")).await;
        api.ended(&task.id).await;
    }
    for _ in 0..MORE {
        within("a removal", removals.event()).await;
    }
}

/// N3, O10
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_answers_take_bounded_memory_and_delay_no_other_client() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(daemon.script("bytes 2000000")).await;
    api.ended(&task.id).await;
    all_is_served(&daemon).await;
    let before = memory(daemon.pid(), "VmRSS");

    let request = ReadOutputRequest {
        max_bytes: MIB as u32,
        ..read(&task.id, 0)
    };
    let mut unread = Connection::open(&daemon.socket(), 0).await;
    let mut answers = JoinSet::new();
    for _ in 0..2_000 {
        answers.spawn(unread.send("ReadOutput", &request).await);
    }
    let mut answered = Vec::new();
    for _ in 0..30 {
        answered.push(within("some answers", answers.join_next()).await);
    }
    let mut most = 0;
    for _ in 0..3 {
        all_is_served(&daemon).await;
        most = most.max(memory(daemon.pid(), "VmRSS"));
    }
    let grown = most.saturating_sub(before) / MIB;
    eprintln!("unread answers: {grown} MiB more than {} MiB", before / MIB);
    assert!(grown < 90, "{grown} MiB for answers that are not read");

    drop((unread, answers, answered));
    let mut again = JoinSet::new();
    for _ in 0..200 {
        let (api, request) = (api.clone(), request.clone());
        again.spawn(async move { api.read(request).await.unwrap().next_offset });
    }
    for offset in within("answers that are read", again.join_all()).await {
        assert_eq!(offset, MIB);
    }
}

/// E7, N3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_streams_take_bounded_memory_and_a_reader_of_the_same_client_gets_everything() {
    let mut daemon = Daemon::builder().arg("--keep-finished=20000").prepare();
    past::write(&daemon.state_dir(), 2_000).await;
    daemon.restart().await;
    let api = daemon.api().await;
    all_is_served(&daemon).await;
    let before = memory(daemon.pid(), "VmRSS");
    // Each answer gets a few bytes through, and then no more.
    let mut unread = Connection::open(&daemon.socket(), 1_000).await;
    let mut streams = JoinSet::new();
    for _ in 0..4_000 {
        streams.spawn(unread.send("WatchEvents", &after(0)).await);
    }
    let streams = within("the streams begin", streams.join_all()).await;
    all_is_served(&daemon).await;
    let grown = memory(daemon.pid(), "VmRSS").saturating_sub(before) / MIB;
    eprintln!("unread streams: {grown} MiB more than {} MiB", before / MIB);
    assert!(grown < 250, "{grown} MiB for streams that are not read");
    let newest = api.revision().await;
    let events = within("a replay", api.watch_after(0).await.up_to(newest)).await;
    assert_eq!(events.len() as u64, newest);
    drop(streams);
}
