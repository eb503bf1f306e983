//! `heeler logs` of several tasks, of a session and of all.

use std::process::Stdio;

use heeler_tests::{Daemon, cli::CommandResult, within};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::{door, open};

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// Finished and live tasks: two of session `s`, one of another session.
async fn tasks(daemon: &Daemon) -> [String; 3] {
    let api = daemon.api().await;
    let finished = daemon.spawned(&["--session", "s", "-c", "seq 1 3"]).await;
    api.ended(&finished).await;
    let script = "echo 2 live; printf 2; sleep 60";
    let live = daemon.spawned(&["--session", "s", "-c", script]).await;
    api.output_reaches(&live, 8).await;
    let other = daemon
        .spawned(&["--session", "t", "-c", "echo 2 other"])
        .await;
    api.ended(&other).await;
    [finished, live, other]
}

/// O2, O11, O12
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn all_tasks_of_a_session_are_searched_and_each_line_names_its_task() {
    let daemon = Daemon::start().await;
    let [finished, live, other] = tasks(&daemon).await;
    let search = async |args: &[&str]| -> CommandResult {
        let args = ["logs", "--grep", "^2"].iter().chain(args);
        daemon.heeler(args).await.ok()
    };
    let expected = format!("{finished} | 2\n{live} | 2 live\n");
    assert_eq!(search(&["--session", "s"]).await.stdout, expected);
    assert_eq!(search(&[&finished, &live]).await.stdout, expected);
    let all = format!("{expected}{other} | 2 other\n");
    assert_eq!(search(&["--all"]).await.stdout, all);
    let one = search(&["--session", "t"]).await.stdout;
    assert_eq!(
        one,
        format!("{other} | 2 other\n"),
        "a session is always named"
    );
    let json = search(&["--json", "--session", "t"]).await.json();
    assert_eq!(json["taskId"], *other);
    let unknown = daemon.heeler(["logs", "--session", "nope"]).await;
    assert_eq!(unknown.code, Some(3), "{unknown:?}");
    let mixed = daemon.heeler(["logs", "shell-aaaaaaaaaa", &other]).await;
    assert_eq!(mixed.code, Some(3), "{mixed:?}");
    assert_eq!(mixed.stdout, format!("{other} | 2 other\n"));
}

/// O3, O15
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn one_stream_follows_a_session_and_the_tasks_that_start_later_to_their_end() {
    let daemon = Daemon::start().await;
    let script = format!("echo one; {}; printf two", door(&daemon, "first"));
    let first = daemon.spawned(&["--session", "s", "-c", &script]).await;
    let mut command = daemon.cli(["logs", "-f", "--session", "s"]);
    let mut follower = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let mut next = async || within("a line", lines.next_line()).await.unwrap();
    assert_eq!(next().await, Some(format!("{first} | one")));
    let script = format!("echo three; {}; echo four", door(&daemon, "later"));
    let later = daemon.spawned(&["--session", "s", "-c", &script]).await;
    assert_eq!(next().await, Some(format!("{later} | three")));
    open(&daemon, "first");
    assert_eq!(next().await, Some(format!("{first} | two")));
    open(&daemon, "later");
    assert_eq!(next().await, Some(format!("{later} | four")));
    assert_eq!(next().await, None);
    let exit = within("the exit", follower.wait()).await.unwrap();
    assert!(exit.success());
}

/// O15, U2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn one_stream_of_several_tasks_is_printed_as_its_messages_with_json() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let ids = [
        daemon.spawned(&["-c", "echo one"]).await,
        daemon.spawned(&["-c", "echo two"]).await,
    ];
    for id in &ids {
        api.ended(id).await;
    }
    let [a, b] = &ids;
    let followed = daemon.heeler(["logs", "-f", "--json", a, b]).await.ok();
    let messages: Vec<Value> = followed
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for (id, data) in [(a, "b25lCg=="), (b, "dHdvCg==")] {
        let of_task = |message: &&Value| {
            let named = [&message["task"]["id"], &message["ended"]["id"]];
            message["output"]["taskId"] == **id || named.contains(&&Value::from(id.as_str()))
        };
        let of_task: Vec<&Value> = messages.iter().filter(of_task).collect();
        let [task, output, ended] = of_task.as_slice() else {
            panic!("{messages:#?}");
        };
        assert!(task["task"].is_object() && ended["ended"].is_object());
        assert_eq!(output["output"]["chunks"][0]["data"], data);
        assert_eq!(output["output"]["nextOffset"], "4");
    }
}

/// O11, O15
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_follower_of_several_tasks_survives_a_restart_of_the_daemon() {
    let mut daemon = Daemon::start().await;
    let script = format!("echo one; {}; echo two", door(&daemon, "door"));
    let a = daemon.spawned(&["-c", &script]).await;
    let b = daemon.spawned(&["-c", &script]).await;
    let mut command = daemon.cli(["logs", "-f", &a, &b, "shell-aaaaaaaaaa"]);
    let mut follower = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let line = within("a line", lines.next_line()).await.unwrap();
        seen.push(line.unwrap());
    }
    daemon.kill9();
    daemon.restart().await;
    open(&daemon, "door");
    while let Some(line) = within("a line", lines.next_line()).await.unwrap() {
        seen.push(line);
    }
    let expected = [&a, &b].map(|id| format!("{id} | one\n{id} | two"));
    assert_eq!(sorted(&seen.join("\n")), sorted(&expected.join("\n")));
    let exit = within("the exit", follower.wait()).await.unwrap();
    assert_eq!(exit.code(), Some(3), "one of the tasks does not exist");
}

/// U3, O15
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn prefixes_are_coloured_on_a_terminal_without_no_color() {
    let daemon = Daemon::start().await;
    let [finished, live, _] = tasks(&daemon).await;
    let mut shown = daemon.at_terminal(["logs", "--session", "s"], None);
    shown.exit().await;
    shown.shows(&format!("\x1b[36m{finished} |\x1b[0m 3")).await;
    shown
        .shows(&format!("\x1b[33m{live} |\x1b[0m 2 live"))
        .await;
    let plain = Daemon::builder().env("NO_COLOR", "1").start().await;
    let [finished, ..] = tasks(&plain).await;
    let mut shown = plain.at_terminal(["logs", "--session", "s"], None);
    shown.exit().await;
    shown.shows(&format!("{finished} | 3")).await;
    assert!(!shown.shown().contains('\x1b'), "{}", shown.shown());
}

/// O10: the tasks end while their follower reads nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_follower_that_reads_nothing_delays_no_task_and_then_gets_all() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = format!("{}; seq 1 300000", door(&daemon, "door"));
    let a = daemon.spawned(&["-c", &script]).await;
    let b = daemon.spawned(&["-c", &script]).await;
    let mut command = daemon.cli(["logs", "-f", &a, &b]);
    let follower = command.stdout(Stdio::piped()).spawn().unwrap();
    open(&daemon, "door");
    for id in [&a, &b] {
        api.ended(id).await;
    }
    let output = within("all output", follower.wait_with_output())
        .await
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for id in [&a, &b] {
        let prefix = format!("{id} | ");
        let numbers = text.lines().filter_map(|line| line.strip_prefix(&prefix));
        assert!(numbers.eq((1..=300_000).map(|number| number.to_string())));
    }
}
