//! Progress: the ring of blocks, the summary, and the events.

use std::collections::BTreeMap;

use heeler_tests::{
    Api, Daemon, Worker, shell,
    v1::{work_request::Item as Request, *},
    watch::task_of,
    worker::{block, hosted, notes, result},
};

async fn blocks(api: &Api, id: &str, count: Option<u32>) -> Vec<Block> {
    let request = InspectRequest {
        task_id: id.to_owned(),
        block_count: count,
        ..Default::default()
    };
    api.raw()
        .inspect(request)
        .await
        .unwrap()
        .into_inner()
        .blocks
}

fn texts(blocks: &[Block]) -> Vec<&str> {
    blocks.iter().map(|block| &*block.text).collect()
}

/// P1, P9, L2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn inspect_gives_the_latest_blocks_oldest_first() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut worker = Worker::register(&api, hosted()).await;
    let id = worker.id();
    assert!(blocks(&api, &id, None).await.is_empty());
    let numbers: Vec<String> = (1..=70).map(|number| number.to_string()).collect();
    for some in numbers.chunks(7) {
        worker.report(notes(some)).await;
    }
    let ten: Vec<String> = (61..=70).map(|number| number.to_string()).collect();
    assert_eq!(texts(&blocks(&api, &id, None).await), ten, "10 by default");
    assert!(blocks(&api, &id, Some(0)).await.is_empty());
    let all = blocks(&api, &id, Some(64)).await;
    assert_eq!(all.len(), 64, "the ring is bounded");
    assert_eq!((all[0].number, &*all[0].text), (7, "7"));
    let ended = worker.finish(result(WorkerStatus::Ok, "")).await;
    assert_eq!(ended.progress.unwrap().block_count, 70, "all are counted");
    assert_eq!(texts(&blocks(&api, &id, Some(2)).await), ["69", "70"]);
}

/// P1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn blocks_of_every_kind_and_size_are_kept_cut_at_a_character() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut worker = Worker::register(&api, hosted()).await;
    let kinds = [
        BlockKind::Text,
        BlockKind::Thought,
        BlockKind::ToolCall,
        BlockKind::ToolResult,
        BlockKind::Note,
    ];
    let hostile = "\u{1b}[2J\0\n\u{fffd}\u{10ffff}";
    let mut sent: Vec<Block> = kinds.map(|kind| block(kind, hostile)).into();
    sent[2].name = "bash".to_owned();
    sent.push(Block::default());
    sent.push(block(BlockKind::ToolResult, &"€".repeat(1 << 19)));
    sent.push(Block {
        text_bytes: 5_000_000,
        ..block(BlockKind::ToolResult, "the part that the client kept")
    });
    let update = ProgressUpdate {
        blocks: sent,
        intent: Some("é".repeat(600)),
        ..Default::default()
    };
    worker.report(update).await;
    let id = worker.id();
    let kept = blocks(&api, &id, None).await;
    for (kept, kind) in kept.iter().zip(kinds) {
        assert_eq!((kept.kind(), &*kept.text), (kind, hostile));
        assert_eq!(kept.text_bytes, hostile.len() as u64);
        assert!(kept.block_time.is_some());
    }
    assert_eq!(kept[2].name, "bash");
    assert_eq!((kept[5].kind(), &*kept[5].text), (BlockKind::Note, ""));
    assert_eq!(kept[6].text.len(), 4095, "1365 whole characters");
    assert_eq!(kept[6].text_bytes, 3 << 19);
    assert_eq!(kept[7].text_bytes, 5_000_000);
    let progress = api.task(&id).await.progress.unwrap();
    assert_eq!(progress.intent.len(), 1024);
    worker.finish(result(WorkerStatus::Ok, "")).await;
}

/// P9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn progress_events_are_coalesced_and_the_last_state_is_announced() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut worker = Worker::register(&api, hosted()).await;
    let mut watch = api.watch_after(worker.task().revision).await;
    for percent in 0..=100 {
        worker
            .report(ProgressUpdate {
                intent: Some(format!("step {percent}")),
                percent: Some(percent),
                counts: BTreeMap::from([("steps".to_owned(), u64::from(percent))]),
                ..notes([format!("at {percent}")])
            })
            .await;
    }
    let events = watch
        .until(|event| {
            let progress = task_of(event).progress.as_ref().unwrap();
            progress.percent == Some(100)
        })
        .await;
    let progress = |event: &TaskEvent| task_of(event).progress.clone().unwrap();
    for event in &events {
        assert_eq!(event.r#type(), TaskEventType::Progress);
    }
    let last = progress(events.last().unwrap());
    assert_eq!((&*last.intent, last.block_count), ("step 100", 101));
    assert_eq!(last.counts["steps"], 100);
    assert!(last.update_time.is_some());
    for pair in events.windows(2) {
        let apart =
            heeler_tests::micros(&pair[1].event_time) - heeler_tests::micros(&pair[0].event_time);
        assert!(apart >= 990_000, "two events within {apart} us");
    }
    worker
        .report(ProgressUpdate {
            percent: Some(7),
            ..Default::default()
        })
        .await;
    let ended = worker.finish(result(WorkerStatus::Ok, "")).await;
    assert_eq!(
        ended.progress.unwrap().percent,
        Some(7),
        "announced by the end"
    );
}

/// P9, N3: a flood is slowed down, and costs no block of the ring.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_floods_is_slowed_down_and_others_are_served() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut flooding = Worker::register(&api, hosted()).await;
    let mut other = Worker::register(&daemon.api().await, hosted()).await;
    let text = "x".repeat(4096);
    for number in 1..=5_000 {
        let update = notes([&*text, &*number.to_string()]);
        flooding.send(number, Request::Progress(update));
    }
    let begun = std::time::Instant::now();
    other.report(notes(["in between"])).await;
    let waited = begun.elapsed();
    assert!(waited.as_secs() < 5, "served after {waited:?}");
    flooding.acknowledged(5_000).await;
    let task = api.task(&flooding.id()).await;
    let kept = blocks(&api, &task.id, Some(64)).await;
    assert_eq!(kept.last().unwrap().number, 10_000);
    assert_eq!(kept.last().unwrap().text, "5000");
    assert!(
        kept.windows(2)
            .all(|pair| pair[1].number == pair[0].number + 1)
    );
    flooding.finish(result(WorkerStatus::Ok, "")).await;
    other.finish(result(WorkerStatus::Ok, "")).await;
}

/// P1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn progress_that_is_sent_again_after_a_reconnect_is_recorded_once() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut worker = Worker::register(&api, hosted()).await;
    worker.report(notes(["one"])).await;
    worker.report(notes(["two"])).await;
    let mut again = worker.rejoin(&api).await;
    assert_eq!(again.joined.acknowledged_sequence, 2);
    for (sequence, text) in [(1, "one"), (2, "two"), (3, "three")] {
        again.send(sequence, Request::Progress(notes([text])));
    }
    again.acknowledged(3).await;
    let kept = blocks(&api, &again.id(), None).await;
    assert_eq!(texts(&kept), ["one", "two", "three"]);
    // Another worker has numbers of its own.
    let taking = WorkJoin {
        take_over: true,
        ..heeler_tests::worker::join(&again.id())
    };
    let mut other = Worker::join(&api, taking).await;
    assert_eq!(other.joined.acknowledged_sequence, 0);
    other.report(notes(["of another worker"])).await;
    assert_eq!(blocks(&api, &other.id(), None).await.len(), 4);
    other.finish(result(WorkerStatus::Ok, "")).await;
}

/// P6, P9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn progress_can_be_reported_without_a_stream() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(shell("exec sleep 1000")).await;
    let answer = api
        .raw()
        .report_progress(ReportProgressRequest {
            task_id: task.id.clone(),
            update: Some(notes(["from a call"])),
            listens: false,
        })
        .await
        .unwrap();
    assert_eq!(answer.into_inner().cancel, None);
    assert_eq!(texts(&blocks(&api, &task.id, None).await), ["from a call"]);
    let progress = api.task(&task.id).await.progress.unwrap();
    assert_eq!(progress.block_count, 1);
    api.kill(&task.id).await;
}

/// P1, L6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_removed_task_takes_its_blocks_along() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut worker = Worker::register(&api, hosted()).await;
    worker.report(notes(["gone soon"])).await;
    let id = worker.id();
    worker.finish(result(WorkerStatus::Ok, "")).await;
    api.remove([&id]).await.unwrap();
    let request = InspectRequest {
        task_id: id,
        ..Default::default()
    };
    let gone = api.raw().inspect(request).await.unwrap_err();
    assert_eq!(gone.code(), tonic::Code::NotFound);
    let next = Worker::register(&api, hosted()).await;
    assert!(blocks(&api, &next.id(), Some(64)).await.is_empty());
}
