//! The trailing ampersand: a script that ends in `&` is a background task without it.

use heeler_tests::{
    Api, Daemon, SpawnRequestExt as _, TaskSpecExt as _, outcome::exit_code, shell, v1::*,
};

async fn spawn(api: &Api, request: SpawnRequest) -> (BackgroundTask, Vec<SpawnNoticeType>) {
    let answer = api.spawn(request).await.unwrap();
    let notices = answer.notices.iter().map(SpawnNotice::r#type).collect();
    (answer.task.unwrap(), notices)
}

/// A1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_trailing_ampersand_is_removed_and_the_task_runs_in_the_background() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for (asked, runs) in [
        ("exit 5 &", "exit 5"),
        ("true && exit 5 &", "true && exit 5"),
        ("exit 5 & # note", "exit 5 # note"),
    ] {
        let request = shell(asked).in_foreground().with_request_id(asked);
        let (task, notices) = spawn(&api, request.clone()).await;
        assert_eq!(task.script(), runs);
        assert_eq!(task.placement(), Placement::Background, "{asked}");
        assert_eq!(notices, [SpawnNoticeType::TrailingAmpersand]);
        assert_eq!(
            spawn(&api, request).await,
            (task.clone(), notices),
            "the same answer again"
        );
        // The command's own exit code: a shell with a background job would have exited with 0.
        let ended = api.ended(&task.id).await;
        assert_eq!(exit_code(&ended), 5, "{asked}");
    }
}

/// A2, A3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn other_ampersands_are_not_rewritten() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for asked in [
        "echo 'a &'",
        "echo \"a &\"",
        "echo a \\&",
        "echo a 2>&1",
        "true |& cat",
        "echo $((3 & 1))",
        "cat <<E\na &\nE",
        "(sleep 0 &)",
        "sleep 0 & wait",
    ] {
        let (task, notices) = spawn(&api, shell(asked)).await;
        assert_eq!((task.script(), notices), (asked, Vec::new()));
        api.ended(&task.id).await;
    }
}

/// A3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn background_children_of_a_script_stay_in_the_task_and_die_with_it() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let program = daemon.fixture_program().to_str().unwrap();
    let (pids, up) = (daemon.file("pids"), daemon.file("up"));
    let script = format!(
        "nohup {program} pids {pids} pid child touch {up} forever >/dev/null & disown; while [ ! -e {up} ]; do sleep 0.01; done"
    );
    let (task, _) = spawn(&api, shell(script)).await;
    let line = heeler_tests::eventually_some("the pid of the child", || {
        let text = std::fs::read_to_string(&pids).ok()?;
        text.lines().next().map(str::to_owned)
    })
    .await;
    let pid: i32 = line.split(' ').nth(1).unwrap().parse().unwrap();
    let child = heeler_tests::Process::now(pid).unwrap();
    api.stop(&task.id).await;
    assert!(child.is_gone());
}

/// A4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_script_that_does_not_parse_is_run_unchanged() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let (task, notices) = spawn(&api, shell("if true; then &")).await;
    assert_eq!((task.script(), notices), ("if true; then &", Vec::new()));
    let ended = api.ended(&task.id).await;
    assert_eq!(exit_code(&ended), 2, "the shell's own exit code");
    let output = api.lines(&task.id).await.join("\n");
    assert!(output.contains("syntax error"), "{output}");
}
