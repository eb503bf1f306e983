//! A session that ends before its task: the input is left to others, the terminal as it was, and the detach key works.

use std::{io::Write as _, process::Stdio, thread, time::Duration};

use heeler_tests::{
    Api, Daemon, Process,
    client::input::status,
    eventually, eventually_some,
    outcome::exit_code,
    terminal::{AtTerminal, Modes},
    v1::*,
    waiting::within_or,
    within,
};
use nix::sys::signal::Signal;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, ChildStdin, ChildStdout},
};

use super::{
    ended, reads, send,
    shell::{Foreground, Shell},
    the_task,
};

const CTRL_B: &[u8] = b"\x02";
const CTRL_Z: &[u8] = b"\x1a";

/// Starts a command with all three streams in pipes.
fn piped(daemon: &Daemon, args: &[&str]) -> (Child, ChildStdin, ChildStdout) {
    let mut command = daemon.cli(args);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    (child, stdin, stdout)
}

async fn echoes(stdin: &mut ChildStdin, stdout: &mut ChildStdout, line: &str) {
    stdin.write_all(line.as_bytes()).await.unwrap();
    reads(stdout, line).await;
}

/// The writer that has the input of a task.
async fn holder(api: &Api, id: &str) -> String {
    api.write_input(status(id)).await.unwrap().writer_id
}

/// I6: Ctrl-C, and a terminal window that is closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_signal_leaves_the_input_to_others() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = daemon.spawned(&["-i", "--", "cat"]).await;
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGHUP, 129)] {
        let (attach, mut stdin, mut stdout) = piped(&daemon, &["attach", "-n", "0", "-i", &id]);
        echoes(&mut stdin, &mut stdout, "one\n").await;
        assert_ne!(holder(&api, &id).await, "");
        send(&attach, signal);
        assert_eq!(ended(attach).await.code, Some(code));
        assert_eq!(holder(&api, &id).await, "", "{signal}");
    }
    daemon.heeler(["send", &id, "two", "--eof"]).await.ok();
    assert_eq!(exit_code(&api.ended(&id).await), 0);

    for policy in ["keep", "detach"] {
        let args = ["run", "-i", "--on-disconnect", policy, "--", "cat"];
        let (run, mut stdin, mut stdout) = piped(&daemon, &args);
        echoes(&mut stdin, &mut stdout, "one\n").await;
        let tasks = api.all().await.into_iter();
        let mut live = tasks.filter(|task| task.state() == TaskState::Running);
        let id = live.next().unwrap().id;
        send(&run, Signal::SIGHUP);
        assert_eq!(ended(run).await.code, Some(129));
        assert_eq!(holder(&api, &id).await, "", "{policy}");
        api.kill(&id).await;
    }
}

/// I5, I6: the window of a terminal is closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_terminal_that_is_gone_leaves_the_input_to_others() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = daemon.spawned(&["-t", "--", "cat"]).await;
    let (mut attach, mut terminal) = daemon.at_unwatched_terminal(["attach", &id]);
    terminal.write_all(b"one\r").unwrap();
    let held = async {
        while holder(&api, &id).await.is_empty() {
            tokio::time::sleep(heeler_tests::waiting::STEP).await;
        }
    };
    within("a key", held).await;
    drop(terminal);
    let exit = within("the command ends", attach.wait()).await.unwrap();
    assert_eq!(exit.code(), Some(129));
    assert_eq!(holder(&api, &id).await, "");
    api.kill(&id).await;
}

/// I6: one that never had the input takes it from nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_reader_that_leaves_takes_the_input_from_no_writer() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = daemon.spawned(&["-t", "--", "cat"]).await;
    let mut writer = daemon.at_terminal(["attach", &id], None);
    writer.becomes(Modes::Odd).await;
    writer.press(b"one\r");
    writer.shows("one\r\none").await;
    let has_it = holder(&api, &id).await;
    let mut reader = daemon.at_terminal(["attach", &id], None);
    reader.shows("one").await;
    reader.press(CTRL_B);
    assert_eq!(reader.exit().await, Some(0));
    assert_eq!(holder(&api, &id).await, has_it);
    writer.press(CTRL_B);
    assert_eq!(writer.exit().await, Some(0));
    assert_eq!(holder(&api, &id).await, "");
    api.kill(&id).await;
}

/// F1: the second press, as the third Ctrl-C.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_detach_key_leaves_a_daemon_that_does_not_answer() {
    let daemon = Daemon::start().await;
    let id = daemon.spawned(&["-t", "--", "cat"]).await;
    let mut attach = daemon.at_terminal(["attach", &id], None);
    attach.becomes(Modes::Odd).await;
    attach.press(b"one\r");
    attach.shows("one\r\none").await;
    let stopped = Process::now(daemon.pid()).unwrap();
    stopped.signal(Signal::SIGSTOP);
    press_until_exit(&mut attach).await;
    assert_eq!(attach.exit().await, Some(1));
    attach.shows("the daemon has not answered").await;
    assert_eq!(attach.modes(), Modes::Usual);
    stopped.signal(Signal::SIGCONT);
    daemon.api().await.kill(&id).await;
}

/// Presses the detach key again and again. A press is lost while one before it is not handled.
async fn press_until_exit(attach: &mut AtTerminal) {
    let pressing = async {
        while attach.child.try_wait().unwrap().is_none() {
            attach.press(CTRL_B);
            tokio::time::sleep(heeler_tests::waiting::STEP).await;
        }
    };
    within("the command ends", pressing).await;
}

/// I3, F1: more is pasted than the task takes.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_detach_key_works_behind_a_paste_that_the_task_does_not_read() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = "stty raw -echo; echo ready; exec sleep 1000";
    let id = daemon.spawned(&["-t", "-c", script]).await;
    let mut attach = daemon.at_terminal(["attach", &id], None);
    attach.shows("ready").await;
    attach.becomes(Modes::Odd).await;
    // Not one of the runtime's threads: those are waited for, also if the test fails.
    let pasting = thread::spawn(move || {
        attach.press(&vec![b'x'; 3 << 20]);
        attach.press(CTRL_B);
        attach
    });
    eventually("the paste", || pasting.is_finished()).await;
    let mut attach = pasting.join().unwrap();
    assert_eq!(attach.exit().await, Some(0));
    assert_eq!(holder(&api, &id).await, "");
    api.kill(&id).await;
}

/// I5: the daemon has forgotten the task.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_error_leaves_the_terminal_as_it_was() {
    let mut daemon = Daemon::start().await;
    daemon.terminate();
    daemon.save_journal();
    daemon.restart().await;
    let script = r"printf '\033[?1049h\033[?1000h\033[?25lready'; exec sleep 1000";
    let id = daemon.spawned(&["-t", "-c", script]).await;
    let mut attach = daemon.at_terminal(["attach", &id], None);
    attach.shows("ready").await;
    daemon.kill9();
    daemon.restore_journal();
    daemon.restart().await;
    assert_eq!(attach.exit().await, Some(3));
    attach.shows("\x1b[?25h\x1b[?1000l\x1b[?1049l").await;
    assert_eq!(attach.modes(), Modes::Usual);
    // The note is on the screen that stays.
    let shown = attach.shown();
    let (_, after) = shown.split_once("\x1b[?1049l").unwrap();
    assert!(after.contains("lost the connection"), "{shown:?}");
}

/// I5: Ctrl-Z on a session that only reads.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_suspended_session_leaves_the_terminal_as_it_was() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = r"printf '\033[?1049h\033[?25lready'; exec sleep 1000";
    let id = daemon.spawned(&["-t", "-c", script]).await;
    let mut shell = Shell::start(&daemon, &format!("attach --read-only {id}"));
    shell.shows("ready").await;
    shell.becomes(Foreground::Command).await;
    let process = Process::now(shell.process_group()).unwrap();
    shell.press(CTRL_Z);
    eventually("the attach to stop", || process.is_stopped()).await;
    shell.shows("ready\x1b[?25h\x1b[?1049l").await;
    shell.becomes(Foreground::Shell).await;
    shell.press(b"\n");
    shell.becomes(Foreground::Command).await;
    shell.shows("\x1b[?1049h\x1b[?25l").await;
    shell.press(CTRL_B);
    assert_eq!(shell.exit().await, Some(0));
    api.kill(&id).await;
}

/// F2: a window that changes its size while the last output waits for its reader.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_signal_that_ends_nothing_loses_no_output() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    // A little more than a pipe holds.
    let size = (64 << 10) + 1000;
    let mut command = daemon.cli(["run", "-c", &format!("head -c {size} /dev/zero")]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut run = command.spawn().unwrap();
    let task = async {
        loop {
            match api.all().await.pop() {
                Some(task) if task.state() == TaskState::Completed => return,
                _ => tokio::time::sleep(heeler_tests::waiting::STEP).await,
            }
        }
    };
    within("the end of the task", task).await;
    // For as long as the command may take to see the end.
    for _ in 0..200 {
        for signal in [Signal::SIGWINCH, Signal::SIGCONT] {
            send(&run, signal);
        }
        tokio::time::sleep(heeler_tests::waiting::STEP).await;
        if run.try_wait().unwrap().is_some() {
            break;
        }
    }
    let mut output = Vec::new();
    let stdout = run.stdout.as_mut().unwrap();
    within("the output", stdout.read_to_end(&mut output))
        .await
        .unwrap();
    assert_eq!(output.len(), size);
    assert_eq!(ended(run).await.code, Some(0));
}

/// I4, F2: Ctrl-S, or a person who reads back in tmux.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_terminal_that_takes_nothing_for_a_while_gets_all_output() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let (mut run, mut stdin, terminal) =
        daemon.at_silent_terminal(["run", "-c", "read -r line; seq 1 50000"]);
    let id = the_task(&api).await.id;
    stdin.write_all(b"begin\n").await.unwrap();
    drop(stdin);
    api.ended(&id).await;
    // Longer than the shim has to end the relay.
    let end = tokio::time::timeout(Duration::from_secs(4), run.wait()).await;
    assert!(end.is_err(), "{end:?}");
    let numbers: String = (1..=50_000).map(|number| format!("{number}\r\n")).collect();
    terminal.watch();
    let shown = eventually_some("the output", || {
        let shown = terminal.shown();
        (shown.len() >= numbers.len()).then_some(shown)
    });
    assert!(shown.await == numbers);
    assert_eq!(ended(run).await.code, Some(0));
}

/// I8: without a relay, and behind a task that does not read.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_that_does_not_read_dies_with_its_caller() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let args = ["run", "--json", "-i", "--", "sleep", "1000"];
    let (run, mut stdin, stdout) = piped(&daemon, &args);
    let id = the_task(&api).await.id;
    // More than all that is on the way takes.
    let full = async { while stdin.write_all(&[b'x'; 64 << 10]).await.is_ok() {} };
    let full = async {
        full.await;
        panic!("the command has ended");
    };
    within_or(full, || ()).await;
    drop((stdin, stdout));
    within("the command ends", run.wait_with_output())
        .await
        .unwrap();
    let task = api.ended(&id).await;
    assert_eq!(task.stop.unwrap().reason, "the caller is gone");
}
