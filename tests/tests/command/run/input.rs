//! A run with input: stdin passed on, and a stdio server that does not outlive its caller.

use std::{
    io::{Seek as _, Write as _},
    process::Stdio,
};

use heeler_tests::{Daemon, Process, eventually, numbered, outcome::proof_of, v1::*, within};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::Child,
};

use super::the_task;

/// Starts `heeler run ARGS…` with all three streams in pipes.
fn piped(daemon: &Daemon, args: &[&str]) -> Child {
    let mut command = daemon.cli(["run"].iter().chain(args));
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// I1, I4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_pipe_on_stdin_is_passed_on_byte_for_byte_and_to_its_end() {
    let daemon = Daemon::start().await;
    let sent = numbered(0..3_000_000);
    let mut run = piped(&daemon, &["--", "cat"]);
    let (mut stdin, mut stdout) = (run.stdin.take().unwrap(), run.stdout.take().unwrap());
    let bytes = sent.clone();
    let writing = tokio::spawn(async move { stdin.write_all(&bytes).await });
    let mut received = Vec::new();
    within("the bytes", stdout.read_to_end(&mut received))
        .await
        .unwrap();
    writing.await.unwrap().unwrap();
    assert!(received == sent, "{} bytes came back", received.len());
    let exit = within("the exit", run.wait()).await.unwrap();
    assert_eq!(exit.code(), Some(0));
}

/// I1, S7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_file_on_stdin_is_passed_on_and_no_stdin_is_at_its_end() {
    let daemon = Daemon::start().await;
    let path = daemon.path("lines");
    std::fs::write(&path, "b\na\n").unwrap();
    let mut command = daemon.cli(["run", "sort"]);
    command.stdin(std::fs::File::open(&path).unwrap());
    let sorted = command.output().await.unwrap();
    assert_eq!(String::from_utf8_lossy(&sorted.stdout), "a\nb\n");
    let without = daemon.heeler(["run", "--", "wc", "-c"]).await.ok();
    assert_eq!(without.stdout.trim(), "0");
}

/// I1, I4: a here-document in bash, or Python's TemporaryFile.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_deleted_file_on_stdin_is_passed_on() {
    let daemon = Daemon::start().await;
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&numbered(0..200_000)).unwrap();
    file.rewind().unwrap();
    let mut command = daemon.cli(["run", "--", "wc", "-c"]);
    command.stdin(file);
    let counted = command.output().await.unwrap();
    assert_eq!(String::from_utf8_lossy(&counted.stdout).trim(), "200000");
}

/// I4: the task need not read, and its exit code is the command's.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_that_does_not_read_its_input_ends_as_it_likes() {
    let daemon = Daemon::start().await;
    let mut run = piped(&daemon, &["-c", "exit 3"]);
    let mut stdin = run.stdin.take().unwrap();
    // More than any buffer on the way holds.
    let writing = tokio::spawn(async move { stdin.write_all(&vec![0; 4 << 20]).await });
    let exit = within("the exit", run.wait()).await.unwrap();
    assert_eq!(exit.code(), Some(3));
    assert!(writing.await.unwrap().is_err(), "the pipe is closed");
}

/// A server that answers each line, and goes on when its input has ended.
const SERVER: &str = "while read -r line; do echo \"{\\\"got\\\": $line}\"; done
    trap '' TERM HUP; while :; do sleep 1000; done";

/// I8: a caller asks and is answered; when it is gone, so is the tree.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stdio_server_works_unchanged_and_dies_with_its_caller() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut run = piped(&daemon, &["-i", "--grace", "1s", "-c", SERVER]);
    let mut stdin = run.stdin.take().unwrap();
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines();
    for number in 0..20 {
        let question = format!("{{\"id\": {number}}}\n");
        stdin.write_all(question.as_bytes()).await.unwrap();
        let answer = within("an answer", lines.next_line()).await.unwrap();
        assert_eq!(
            answer,
            Some(format!("{{\"got\": {{\"id\": {number}}}}}")),
            "no byte is added"
        );
    }
    let task = the_task(&api).await;
    let leader = Process::now(task.leader.as_ref().unwrap().pid).unwrap();
    // The caller dies: both pipes are closed.
    drop((stdin, lines));
    within("the command ends", run.wait()).await.unwrap();
    eventually("the leader is gone", || !leader.is_alive()).await;
    let ended = api.ended(&task.id).await;
    assert_eq!(ended.state(), TaskState::Cancelled);
    assert_eq!(ended.stop.as_ref().unwrap().reason, "the caller is gone");
    proof_of(&ended);
}

/// I4: the end of the input alone stops nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_goes_on_after_the_end_of_its_input() {
    let daemon = Daemon::start().await;
    let mut run = piped(&daemon, &["-c", "cat; echo later; exit 5"]);
    let mut stdin = run.stdin.take().unwrap();
    stdin.write_all(b"first\n").await.unwrap();
    drop(stdin);
    let output = within("the end", run.wait_with_output()).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "first\nlater\n");
    assert_eq!(output.status.code(), Some(5));
}

/// I2, I4: a daemon that dies in the middle loses and doubles nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn input_survives_a_crash_of_the_daemon() {
    let mut daemon = Daemon::start().await;
    let sent = numbered(0..2_000_000);
    let mut run = piped(&daemon, &["--", "cat"]);
    let (mut stdin, mut stdout) = (run.stdin.take().unwrap(), run.stdout.take().unwrap());
    let bytes = sent.clone();
    let writing = tokio::spawn(async move { stdin.write_all(&bytes).await });
    let mut received = vec![0; 100_000];
    within("a part", stdout.read_exact(&mut received))
        .await
        .unwrap();
    daemon.kill9();
    daemon.restart().await;
    within("the rest", stdout.read_to_end(&mut received))
        .await
        .unwrap();
    writing.await.unwrap().unwrap();
    assert!(received == sent, "{} bytes came back", received.len());
    assert!(run.wait().await.unwrap().success());
}
