//! Workers inside their own tasks: a program with the SDK, and a shell script with the command.

use heeler_tests::{
    Api, Daemon, SpawnRequestExt as _, argv, binary, eventually, micros, millis,
    outcome::{exit_code, proof_of, signals_sent},
    request::{cancel, read},
    secs, shell,
    v1::*,
};

/// Waits for a line of a task's output, and returns the time at which it was read.
async fn line_time(api: &Api, id: &str, line: &str) -> i64 {
    let mut offset = 0;
    loop {
        let request = ReadOutputRequest {
            wait: Some(secs(20)),
            ..read(id, offset)
        };
        let piece = api.read(request).await.unwrap();
        for chunk in &piece.chunks {
            let Some(output_chunk::Content::Data(data)) = &chunk.content else {
                panic!("raw output: {chunk:?}");
            };
            if String::from_utf8_lossy(data).contains(line) {
                return micros(&chunk.read_time);
            }
        }
        assert!(
            piece.next_offset > offset,
            "no {line:?} in the output of {id}"
        );
        offset = piece.next_offset;
    }
}

fn now() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap().as_micros() as i64
}

/// P6, P7, P8, C18
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_worker_inside_an_agent_task_hears_messages_and_a_cancel_within_50_ms() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let program = binary::sibling("heeler-worker");
    let task = api
        .start(argv([program.to_str().unwrap()]).with_kind(TaskKind::Agent))
        .await;
    line_time(&api, &task.id, &format!("joined {}", task.id)).await;
    let mut delays = Vec::new();
    for number in 1..=20 {
        let sent = now();
        let request = SendMessageRequest {
            task_id: task.id.clone(),
            text: format!("m{number}."),
            ..Default::default()
        };
        api.raw().send_message(request).await.unwrap();
        let line = format!("message {number} m{number}.");
        delays.push(line_time(&api, &task.id, &line).await - sent);
    }
    // The machine may be busy with other tests: not every message can be on time.
    delays.sort_unstable();
    assert!(delays[4] < 50_000, "messages arrived after {delays:?} us");
    let task = api.task(&task.id).await;
    assert_eq!(task.progress.unwrap().intent, "listens");

    let request = CancelRequest {
        reason: "enough".to_owned(),
        wait: true,
        ..cancel(&task.id)
    };
    let ended = api.cancel_one(request).await.task.unwrap();
    let heard = line_time(&api, &task.id, "stopping Soft enough").await;
    let stop = ended.stop.as_ref().unwrap();
    let delay = heard - micros(&stop.request_time);
    assert!(delay < 5_000_000, "the cancel arrived after {delay} us");
    // The signal follows the result: it may end the worker before the worker ends itself.
    assert_eq!(ended.state(), TaskState::Cancelled);
    assert_eq!(ended.result.as_ref().unwrap().text, "as far as it got");
    proof_of(&ended);
}

/// C18
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_worker_that_hears_and_does_not_stop_is_killed() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let program = binary::sibling("heeler-worker");
    let task = api.start(argv([program.to_str().unwrap(), "deaf"])).await;
    line_time(&api, &task.id, "joined").await;
    let request = CancelRequest {
        how: Some(cancel_request::How::Graceful(StopPolicy {
            soft_grace: Some(millis(400)),
            ..Default::default()
        })),
        wait: true,
        ..cancel(&task.id)
    };
    let ended = api.cancel_one(request).await.task.unwrap();
    assert_eq!(signals_sent(&ended), ["SIGTERM"]);
    line_time(&api, &task.id, "stopping Soft").await;
    proof_of(&ended);
}

/// P6, C18
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_shell_script_reports_and_checks_with_the_command() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let heeler = daemon.program();
    let script = format!(
        "set -e; h={}
        $h report --intent 'counts sheep' --percent 10 --count sheep=1
        $h report --tool-call sleep 0.1
        printf 'one\ntwo' | $h report --tool-result sleep -
        $h report --note 'so far so good'
        $h check; echo yes > {}
        code=0; while [ $code = 0 ]; do $h check || code=$?; done
        echo \"check said $code\"
        $h report --note 'wrapping up'
        exit 0",
        heeler.display(),
        daemon.file("checked")
    );
    let task = api.start(shell(&script)).await;
    eventually("a first check", || daemon.path("checked").exists()).await;
    let inspected = api.inspect(&task.id).await.unwrap();
    let kinds: Vec<_> = inspected.blocks.iter().map(Block::kind).collect();
    assert_eq!(kinds[..2], [BlockKind::ToolCall, BlockKind::ToolResult]);
    assert_eq!(inspected.blocks[1].text, "one\ntwo");
    assert_eq!(inspected.blocks[1].name, "sleep");
    let seen = inspected.task.unwrap().progress.unwrap();
    assert_eq!((&*seen.intent, seen.percent), ("counts sheep", Some(10)));
    assert_eq!(seen.counts["sheep"], 1);

    let request = CancelRequest {
        reason: "enough sheep".to_owned(),
        ..cancel(&task.id)
    };
    api.cancel_one(request).await;
    let ended = api.ended(&task.id).await;
    assert_eq!(ended.state(), TaskState::Cancelled);
    assert_eq!(exit_code(&ended), 0, "it ended by itself");
    assert_eq!(signals_sent(&ended), Vec::<&str>::new());
    let lines = api.lines(&ended.id).await;
    assert!(
        lines.iter().any(|line| line == "check said 10"),
        "{lines:?}"
    );
    assert!(
        lines.iter().any(|line| line.ends_with(": enough sheep")),
        "{lines:?}"
    );
    assert_eq!(
        ended.progress.unwrap().block_count,
        4,
        "the last report counts"
    );
}
