//! FollowOutput: many tasks in one stream.

use heeler_tests::{
    Api, Daemon, Refusal, SpawnRequestExt as _, argv, millis,
    output::raw,
    pattern,
    request::{ids, session},
    shell,
    v1::{follow_output_request::Start, *},
};
use tonic::Code;

fn of_session(id: &str) -> FollowOutputRequest {
    FollowOutputRequest {
        filter: Some(session(id)),
        ..FollowOutputRequest::default()
    }
}

fn until_finished(request: FollowOutputRequest) -> FollowOutputRequest {
    FollowOutputRequest {
        until: FollowUntil::Finished.into(),
        ..request
    }
}

async fn start_in(api: &Api, session: &str, request: SpawnRequest) -> String {
    api.start(request.with_session(session)).await.id
}

/// O15
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stream_carries_tasks_of_now_and_of_later_each_to_its_end() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let waits = format!("print early gate {} print late exit 0", daemon.file("gate"));
    let first = start_in(&api, "s", daemon.script(&waits)).await;
    start_in(&api, "other", shell("echo foreign")).await;
    let mut follow = api.follow(of_session("s")).await;
    follow
        .until("the first output", |follow| {
            follow.bookmarks == 1 && follow.of(&first).text() == "early\n"
        })
        .await;
    let mut later = Vec::new();
    for number in 0..20 {
        let script = format!("echo {number}; echo err{number} >&2");
        later.push(start_in(&api, "s", shell(script)).await);
    }
    gate.open();
    follow
        .until("all ends", |follow| follow.ended.len() == 21)
        .await;
    assert_eq!(follow.tasks.len(), 21);
    assert_eq!(follow.of(&first).text(), "early\nlate\n");
    for (number, id) in later.iter().enumerate() {
        let followed = follow.of(id);
        assert_eq!(followed.bytes(), api.output(id).await, "{number}");
        let end = followed.end.as_ref().unwrap();
        assert_eq!(end.state(), TaskState::Completed);
    }
}

/// O2, O15
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_hundred_tasks_come_whole_through_one_stream_and_take_turns() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    const ALL: usize = 100_000;
    let mut ids = Vec::new();
    for _ in 0..100 {
        ids.push(start_in(&api, "s", daemon.script(&format!("bytes {ALL}"))).await);
    }
    let request = FollowOutputRequest {
        include_finished: true,
        ..until_finished(of_session("s"))
    };
    let mut follow = api.follow(request).await;
    follow.finished().await;
    let expected = pattern(ALL);
    for id in &ids {
        assert!(follow.of(id).bytes() == expected, "{id}");
    }
    assert_eq!(follow.ended.len(), 100);
    // Of tasks that all have output, none gets a second piece before the others have had one.
    let longest_run = follow
        .turns
        .chunk_by(|one, next| one == next)
        .map(<[_]>::len)
        .max();
    assert!(
        longest_run < Some(4),
        "{longest_run:?} pieces of one task in a row"
    );
}

/// O15
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stream_resumes_after_a_crash_without_loss_or_repeats() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let (middle, end) = (daemon.gate("middle"), daemon.gate("end"));
    let script = format!(
        "bytes 50000 gate {} bytes 50000 gate {} print last exit 0",
        daemon.file("middle"),
        daemon.file("end")
    );
    let long: Vec<_> = [0; 5].map(|_| daemon.script(&script)).into();
    let mut expected = [pattern(50_000), pattern(50_000)].concat();
    expected.extend_from_slice(b"last\n");
    let mut tasks = Vec::new();
    for request in long {
        tasks.push(start_in(&api, "s", request).await);
    }
    let short = start_in(&api, "s", shell("echo short")).await;
    let request = FollowOutputRequest {
        include_finished: true,
        ..of_session("s")
    };
    let mut follow = api.follow(request).await;
    let half = |follow: &heeler_tests::Follow| {
        let size = |id: &String| follow.tasks.get(id).map_or(0, |task| task.bytes().len());
        tasks.iter().filter(|id| size(id) > 0).count() == 5 && follow.ended.len() == 1
    };
    follow.until("some output of each", half).await;
    daemon.kill9();
    while follow.try_step().await.is_ok() {}
    middle.open();
    daemon.restart().await;
    let api = daemon.api().await;
    // These begin, and one of them ends, while the stream is broken.
    let missed = start_in(&api, "s", shell("echo missed")).await;
    api.ended(&missed).await;
    let later = start_in(&api, "s", daemon.script(&script)).await;
    follow.resume(&api).await;
    follow
        .until("the task of meanwhile", |follow| follow.ended.len() == 2)
        .await;
    daemon.terminate();
    while follow.try_step().await.is_ok() {}
    daemon.restart().await;
    let api = daemon.api().await;
    follow.resume(&api).await;
    end.open();
    follow
        .until("all ends", |follow| follow.ended.len() == 8)
        .await;
    tasks.push(later);
    for id in &tasks {
        assert!(follow.of(id).bytes() == expected, "{id}");
    }
    assert_eq!(follow.of(&short).text(), "short\n");
    assert_eq!(follow.of(&missed).text(), "missed\n");
    assert_eq!(follow.tasks.len(), 8);
}

/// O15
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stream_begins_at_the_requested_place_and_sends_what_the_filter_selects() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let (gate, last) = (daemon.gate("gate"), daemon.gate("last"));
    let script = format!(
        "bytes 30000 err old gate {} err new gate {} print 000000007 exit 0",
        daemon.file("gate"),
        daemon.file("last")
    );
    let id = start_in(&api, "s", daemon.script(&script)).await;
    api.output_reaches(&id, 30_004).await;
    let new_lines = FollowOutputRequest {
        start: Some(Start::TailLines(0)),
        ..until_finished(of_session("s"))
    };
    let last_lines = FollowOutputRequest {
        start: Some(Start::TailLines(2)),
        output_filter: Some(OutputFilter {
            include: "7$|new".into(),
            ..OutputFilter::default()
        }),
        ..until_finished(of_session("s"))
    };
    let errors = FollowOutputRequest {
        output_filter: Some(OutputFilter {
            stream: OutputStream::Stderr.into(),
            ..OutputFilter::default()
        }),
        ..until_finished(of_session("s"))
    };
    let mut follows = Vec::new();
    for request in [new_lines, last_lines, errors] {
        let mut follow = api.follow(request).await;
        follow
            .until("its place", |follow| {
                follow
                    .tasks
                    .get(&id)
                    .is_some_and(|task| task.next_offset.is_some())
            })
            .await;
        follows.push(follow);
    }
    gate.open();
    api.output_reaches(&id, 30_008).await;
    last.open();
    let mut texts = Vec::new();
    for mut follow in follows {
        follow.finished().await;
        texts.push(follow.of(&id).text());
    }
    assert_eq!(texts[0], "new\n000000007\n");
    assert_eq!(texts[1], "000002987\n000002997\nnew\n000000007\n");
    assert_eq!(texts[2], "old\nnew\n");
}

/// O15
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn finished_tasks_are_followed_on_request_and_removed_ones_are_named() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let kept = start_in(&api, "s", shell("echo kept")).await;
    let removed = start_in(&api, "s", shell("echo removed")).await;
    for id in [&kept, &removed] {
        api.ended(id).await;
    }
    let mut live_only = api.follow(until_finished(of_session("s"))).await;
    live_only.finished().await;
    assert!(live_only.tasks.is_empty());

    api.remove([&removed]).await.unwrap();
    let cursor = |id: &String, offset: u64| OutputCursor {
        task_id: id.clone(),
        offset: Some(offset),
    };
    let request = FollowOutputRequest {
        filter: Some(ids([&kept])),
        cursors: vec![cursor(&kept, 2), cursor(&removed, 0)],
        ..until_finished(FollowOutputRequest::default())
    };
    let mut follow = api.follow(request).await;
    follow.finished().await;
    assert_eq!(follow.of(&kept).text(), "pt\n");
    assert_eq!(follow.gone, [removed]);
}

/// O15
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn bookmarks_come_while_a_stream_is_silent() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = FollowOutputRequest {
        bookmark_interval: Some(millis(100)),
        ..of_session("s")
    };
    let mut follow = api.follow(request).await;
    follow
        .until("bookmarks", |follow| follow.bookmarks == 3)
        .await;
    assert!(follow.tasks.is_empty());
}

/// O10, O15
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn streams_that_are_not_read_delay_neither_their_tasks_nor_other_streams() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    const ALL: usize = 16 << 20;
    let script = format!("gate {} bytes {ALL} exit 0", daemon.file("gate"));
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(start_in(&api, "s", daemon.script(&script)).await);
    }
    let mut stalled = Vec::new();
    for _ in 0..20 {
        stalled.push(daemon.api().await.follow(of_session("s")).await);
    }
    let reader = daemon.api().await;
    let mut follow = reader.follow(until_finished(of_session("s"))).await;
    gate.open();
    follow.finished().await;
    for id in &ids {
        let task = api.ended(id).await;
        assert_eq!(task.state(), TaskState::Completed);
        assert_eq!(follow.of(id).bytes().len(), ALL);
    }
    drop(stalled);
}

/// O15
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn another_epoch_and_a_revision_of_the_future_are_refused() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let other = FollowOutputRequest {
        epoch: "00000000-0000-0000-0000-000000000000".into(),
        after_revision: Some(0),
        ..FollowOutputRequest::default()
    };
    Refusal::expect(
        api.try_follow(other).await,
        Code::FailedPrecondition,
        "EPOCH_MISMATCH",
    );
    let future = FollowOutputRequest {
        after_revision: Some(1000),
        ..FollowOutputRequest::default()
    };
    Refusal::expect(
        api.try_follow(future).await,
        Code::OutOfRange,
        "REVISION_OUT_OF_RANGE",
    );
}

/// O15, R7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_that_shuts_down_ends_the_stream_after_the_output_so_far() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "print out forever").await;
    let mut follow = api.follow(FollowOutputRequest::default()).await;
    follow
        .until("the first output", |follow| follow.turns.len() == 1)
        .await;
    daemon.terminate();
    let status = loop {
        match follow.try_step().await {
            Ok(()) => {}
            Err(status) => break status,
        }
    };
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert_eq!(
        follow
            .of(&fixture.id)
            .chunks
            .iter()
            .map(|chunk| raw(chunk).len())
            .sum::<usize>(),
        4
    );
    daemon.restart().await;
    let api = daemon.api().await;
    let id = api.start(argv(["true"])).await.id;
    follow.resume(&api).await;
    follow
        .until("a new task", |follow| follow.ended == [id.clone()])
        .await;
}
