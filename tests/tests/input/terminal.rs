//! Tasks with a terminal.

use heeler_tests::{
    Daemon, Setting, SpawnRequestExt as _, argv, in_each_setting, outcome::exit_code, pattern,
    queued, shell, v1::*,
};

use super::output_with;

in_each_setting! {
    a_task_sees_a_terminal_of_the_size_that_it_asked_for_and_is_told_of_another,
}

/// I5
async fn a_task_sees_a_terminal_of_the_size_that_it_asked_for_and_is_told_of_another(
    daemon: Daemon,
    _: Setting,
) {
    let api = daemon.api().await;
    let script =
        "trap 'stty size' WINCH; tty; stty size; ps -o tpgid= -p $$ | grep -q $$ && echo front
        while :; do sleep 0.05; done";
    let id = api.start(shell(script).with_terminal(101, 31)).await.id;
    let output = output_with(&api, &id, "front").await;
    assert!(output.contains("/dev/pts/"), "{output:?}");
    assert!(output.contains("31 101\r\n"), "{output:?}");
    api.resize(&id, 120, 50).await.unwrap();
    output_with(&api, &id, "50 120\r\n").await;
    let chunks = api.chunks(&id).await.unwrap();
    let streams = chunks.iter().map(OutputChunk::stream);
    assert!(streams.clone().all(|stream| stream == OutputStream::Stdout));
    api.kill(&id).await;
}

/// I5: also one that is attached to while it waits for its queue.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_that_is_queued_begins_with_the_size_that_its_terminal_was_given() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let first = api.start(queued("q", argv(["sleep", "600"]))).await.id;
    let sized = shell("stty size; read -r line").with_terminal(101, 31);
    let id = api.start(queued("q", sized)).await.id;
    assert_eq!(api.task(&id).await.state(), TaskState::Queued);
    for size in [(80, 24), (120, 50)] {
        api.resize(&id, size.0, size.1).await.unwrap();
    }
    api.kill(&first).await;
    let output = output_with(&api, &id, "\r\n").await;
    assert_eq!(output, "50 120\r\n");
    api.kill(&id).await;
}

/// I5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn control_c_is_an_interrupt_by_the_line_discipline() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = "trap 'echo interrupted; exit 7' INT; echo ready; while :; do sleep 0.05; done";
    let id = api.start(shell(script).with_terminal(0, 0)).await.id;
    output_with(&api, &id, "ready").await;
    api.type_in(&id, "\x03").await;
    assert_eq!(exit_code(&api.ended(&id).await), 7);
    let output = output_with(&api, &id, "interrupted").await;
    assert!(output.contains("^C"), "{output:?}");
}

/// I1, I5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_close_is_the_end_of_file_character_of_the_terminal() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for (typed, shown) in [
        ("", "over\r\n"),
        ("line\n", "line\r\nline\r\nover\r\n"),
        ("part", "partpartover\r\n"),
    ] {
        let request = shell("cat; echo over").with_terminal(80, 24);
        let id = api.start(request).await.id;
        if !typed.is_empty() {
            api.type_in(&id, typed).await;
        }
        api.close_input(&id).await;
        assert_eq!(exit_code(&api.ended(&id).await), 0);
        let output = String::from_utf8(api.output(&id).await).unwrap();
        assert_eq!(output, shown, "{typed:?}");
    }
}

/// I5, S6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_terminal_has_its_own_type_and_no_non_interactive_defaults() {
    let daemon = Daemon::builder().env("COLUMNS", "7").env("TERM", "odd");
    let daemon = daemon.start().await;
    let api = daemon.api().await;
    let script = "echo \"$TERM ${NO_COLOR-none} ${COLUMNS-none}\"";
    let plain = shell(script).with_terminal(80, 24);
    let non_interactive = EnvironmentDefaults::NonInteractive;
    for (request, shown) in [
        (plain.clone(), "xterm-256color none none\r\n"),
        (
            plain.clone().with_env([("TERM", "vt100")]),
            "vt100 none none\r\n",
        ),
        (
            plain.with_env_defaults(non_interactive),
            "xterm-256color 1 none\r\n",
        ),
        (shell(script), "dumb 1 7\n"),
    ] {
        let task = api.start(request).await;
        api.ended(&task.id).await;
        let output = String::from_utf8(api.output(&task.id).await).unwrap();
        assert_eq!(output, shown, "{:?}", task.spec);
    }
}

/// I5, O6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn output_to_a_terminal_just_before_the_exit_is_there_at_the_end() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for _ in 0..10 {
        let request = shell("seq 1 5000").with_terminal(80, 24);
        let id = api.start(request).await.id;
        api.ended(&id).await;
        let output = String::from_utf8(api.output(&id).await).unwrap();
        let expected: String = (1..=5000).map(|number| format!("{number}\r\n")).collect();
        assert!(output == expected, "{} bytes", output.len());
    }
}

/// I1, I3, I5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_megabyte_passes_through_a_terminal_in_raw_mode() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let copy = daemon.file("copy");
    let script = format!("stty raw -echo; echo ready; head -c 1000000 > {copy}");
    let id = api.start(shell(script).with_terminal(80, 24)).await.id;
    output_with(&api, &id, "ready").await;
    let data = pattern(1_000_000);
    api.type_in(&id, &data).await;
    assert_eq!(exit_code(&api.ended(&id).await), 0);
    assert!(std::fs::read(copy).unwrap() == data);
}

/// I5, R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_terminal_outlives_the_server() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = argv(["sh", "-c", "stty size; cat"]).with_terminal(80, 24);
    let id = api.start(request).await.id;
    output_with(&api, &id, "24 80").await;
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    api.resize(&id, 90, 30).await.unwrap();
    api.type_in(&id, "still here\n").await;
    output_with(&api, &id, "still here\r\nstill here\r\n").await;
    api.close_input(&id).await;
    assert_eq!(exit_code(&api.ended(&id).await), 0);
}
