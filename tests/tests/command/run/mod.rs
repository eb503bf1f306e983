//! `heeler run`: like running the command itself, until it goes to the background.

mod background;
mod ending;
mod ensure;
mod input;
mod leaving;
mod own_terminal;
mod queue;
mod relay;
mod shell;
mod terminal;

use std::process::Stdio;

use heeler_tests::{Api, Daemon, TaskSpecExt as _, cli::CommandResult, pattern, v1::*, within};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::{
    io::AsyncReadExt,
    process::{Child, ChildStdout},
};

/// Starts `heeler run ARGS…` with its output in pipes.
fn run(daemon: &Daemon, args: &[&str]) -> Child {
    let mut command = daemon.cli(["run"].iter().chain(args));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Waits until the only task runs.
async fn the_task(api: &Api) -> BackgroundTask {
    let found = async {
        loop {
            match api.all().await.pop() {
                Some(task) if task.state() == TaskState::Running => return task,
                _ => tokio::time::sleep(heeler_tests::waiting::STEP).await,
            }
        }
    };
    within("a running task", found).await
}

/// Reads this text from stdout.
async fn reads(out: &mut ChildStdout, text: &str) {
    let mut found = vec![0; text.len()];
    let read = out.read_exact(&mut found);
    within(text, read).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&found), text);
}

/// Waits for the end of the command.
async fn ended(child: Child) -> CommandResult {
    let output = within("the command ends", child.wait_with_output()).await;
    let output = output.unwrap();
    CommandResult {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn send(child: &Child, signal: Signal) {
    let pid = child.id().unwrap() as i32;
    kill(Pid::from_raw(pid), signal).unwrap();
}

/// F1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn stdout_stderr_and_exit_code_are_those_of_the_command() {
    let daemon = Daemon::start().await;
    let result = daemon
        .heeler(["run", "-c", "echo out; echo err >&2; exit 7"])
        .await;
    let found = (result.code, &*result.stdout, &*result.stderr);
    assert_eq!(found, (Some(7), "out\n", "err\n"));
    let task = daemon.api().await.all().await.pop().unwrap();
    assert_eq!(task.state(), TaskState::Failed);
    assert_eq!(task.foreground().on_disconnect(), DisconnectAction::Cancel);
}

/// S4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_end_has_the_exit_code_that_a_shell_gives_it() {
    let daemon = Daemon::start().await;
    let cases: [(&[&str], i32); 8] = [
        (&["--", "true"], 0),
        (&["-c", "exit 255"], 255),
        (&["-c", "kill -9 $$"], 137),
        (&["-c", "kill -TERM $$"], 143),
        (&["-c", "no-such-program"], 127),
        (&["--", "no-such-program"], 127),
        (&["--", "/etc/passwd"], 126),
        (&["--cwd", "/no/such/directory", "--", "true"], 1),
    ];
    for (args, expected) in cases {
        let result = daemon.heeler(["run"].iter().chain(args)).await;
        assert_eq!(result.code, Some(expected), "{args:?}: {result:?}");
        assert_eq!(result.stdout, "", "{args:?}: {result:?}");
    }
}

/// F2, F10
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ten_megabytes_arrive_complete_and_in_order() {
    let daemon = Daemon::start().await;
    let written = pattern(10_000_000);
    std::fs::write(daemon.path("big"), &written).unwrap();
    let mut command = daemon.cli(["run", "--", "cat", &daemon.file("big")]);
    let output = within("the end", command.output()).await.unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout == written, "{} bytes", output.stdout.len());
}

/// O3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn output_without_a_newline_is_printed_at_once() {
    let daemon = Daemon::start().await;
    let (mut gate, path) = (daemon.gate("gate"), daemon.file("gate"));
    let script = format!("printf abc; read line < {path}; printf def");
    let mut command = run(&daemon, &["-c", &script]);
    reads(command.stdout.as_mut().unwrap(), "abc").await;
    gate.write("\n");
    let result = ended(command).await;
    assert_eq!(
        (result.code, &*result.stdout),
        (Some(0), "def"),
        "{result:?}"
    );
}

/// F6, R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_run_continues_across_crashes_of_the_daemon() {
    let mut daemon = Daemon::start().await;
    let (mut gate, path) = (daemon.gate("gate"), daemon.file("gate"));
    let script =
        format!("for i in 1 2 3; do echo $i; echo $i >&2; read line < {path}; done; exit 5");
    let mut command = run(&daemon, &["-c", &script]);
    for round in 1..=3 {
        let out = command.stdout.as_mut().unwrap();
        reads(out, &format!("{round}\n")).await;
        daemon.kill9();
        if round % 2 == 0 {
            // In this round the task goes on without a daemon.
            gate.write("\n");
            daemon.restart().await;
        } else {
            daemon.restart().await;
            gate.write("\n");
        }
    }
    let result = ended(command).await;
    let found = (result.code, &*result.stdout, &*result.stderr);
    assert_eq!(found, (Some(5), "", "1\n2\n3\n"));
}

/// S1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn json_prints_the_messages_of_the_attach_stream() {
    let daemon = Daemon::start().await;
    let result = daemon.heeler(["run", "--json", "--", "echo", "hi"]).await;
    let lines = result.stdout.lines().map(serde_json::from_str);
    let lines: Vec<serde_json::Value> = lines.map(Result::unwrap).collect();
    let task = &lines[0]["attached"]["task"];
    assert_eq!(task["placement"], "PLACEMENT_FOREGROUND");
    assert_eq!(lines[1]["output"]["chunks"][0]["data"], "aGkK");
    assert_eq!(lines[1]["output"]["nextOffset"], "3");
    let ended = &lines[2]["ended"];
    assert_eq!(ended["reason"], "ATTACH_END_REASON_FINISHED");
    assert_eq!(ended["task"]["id"], task["id"]);
    assert_eq!((result.code, lines.len()), (Some(0), 3));
}
