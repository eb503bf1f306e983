//! A run at a terminal: its keys, and the modes of the terminal afterwards.

use std::process::Stdio;

use heeler_tests::{
    Daemon, Process, eventually, outcome::proof_of, terminal::Modes, v1::*, within,
};
use nix::sys::signal::Signal;
use tokio::io::AsyncReadExt;

use super::{
    reads,
    shell::{Foreground, Shell},
    the_task,
};

const CTRL_B: &[u8] = b"\x02";
const CTRL_C: &[u8] = b"\x03";
const CTRL_Z: &[u8] = b"\x1a";

/// F1, F5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_detach_key_puts_the_task_into_the_background() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = "echo one; exec sleep 60";
    let mut run = daemon.at_terminal(["run", "-c", script], Some(Stdio::piped()));
    let mut out = run.child.stdout.take().unwrap();
    reads(&mut out, "one\n").await;
    run.becomes(Modes::Keys).await;
    // Other keys have no effect and no echo.
    run.press(b"xyzzy");
    run.press(CTRL_B);
    assert_eq!(run.exit().await, Some(0));
    let mut id = String::new();
    within("the id", out.read_to_string(&mut id)).await.unwrap();
    let task = api.task(id.trim_end()).await;
    assert_eq!(
        (task.state(), task.placement()),
        (TaskState::Running, Placement::Background)
    );
    assert_eq!(task.detachment.unwrap().reason, "detach key");
    run.shows("continues in the background").await;
    assert!(!run.shown().contains("xyzzy"), "{}", run.shown());
    assert_eq!(run.modes(), Modes::Usual);
}

/// C1, C14
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ctrl_c_cancels_the_whole_tree_and_ends_the_run() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = "setsid sleep 60 & echo ready; exec sleep 60";
    let mut run = daemon.at_terminal(["run", "-c", script], None);
    run.shows("ready").await;
    run.becomes(Modes::Keys).await;
    run.press(CTRL_C);
    assert_eq!(run.exit().await, Some(130));
    assert_eq!(run.modes(), Modes::Usual);
    let task = api.all().await.remove(0);
    assert_eq!(task.state(), TaskState::Cancelled);
    proof_of(&task);
}

/// F1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_terminal_modes_are_restored_at_every_end() {
    let daemon = Daemon::start().await;
    let (mut gate, path) = (daemon.gate("gate"), daemon.file("gate"));
    let script = format!("echo ready; read line < {path}; exit 3");
    let mut run = daemon.at_terminal(["run", "-c", &script], None);
    run.shows("ready").await;
    run.becomes(Modes::Keys).await;
    gate.write("\n");
    assert_eq!(run.exit().await, Some(3));
    assert_eq!(run.modes(), Modes::Usual);

    let args = ["run", "--on-disconnect", "keep", "--", "sleep", "60"];
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGHUP, 129)] {
        let mut run = daemon.at_terminal(args, None);
        run.becomes(Modes::Keys).await;
        run.process().signal(signal);
        assert_eq!(run.exit().await, Some(code));
        assert_eq!(run.modes(), Modes::Usual);
    }
}

/// F1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ctrl_z_restores_the_terminal_and_fg_takes_it_again() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut shell = Shell::start(&daemon, "run -- sleep 60");
    shell.becomes(Foreground::Command).await;
    let task = the_task(&api).await;
    let process = Process::now(shell.process_group()).unwrap();
    shell.press(CTRL_Z);
    eventually("the run to stop", || process.is_stopped()).await;
    // The shell reads a line before it continues the command.
    shell.becomes(Foreground::Shell).await;
    shell.press(b"\n");
    shell.becomes(Foreground::Command).await;
    shell.press(CTRL_B);
    assert_eq!(shell.exit().await, Some(0));
    assert_eq!(api.task(&task.id).await.placement(), Placement::Background);
}

/// F1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ctrl_z_has_no_effect_without_a_job_control_shell() {
    let daemon = Daemon::start().await;
    let (mut gate, path) = (daemon.gate("gate"), daemon.file("gate"));
    let script = format!("read line < {path}; echo on; exec sleep 60");
    let mut run = daemon.at_terminal(["run", "-c", &script], None);
    run.becomes(Modes::Keys).await;
    run.press(CTRL_Z);
    gate.write("\n");
    run.shows("on\r\n").await;
    run.becomes(Modes::Keys).await;
    run.press(CTRL_B);
    assert_eq!(run.exit().await, Some(0));
    assert_eq!(run.modes(), Modes::Usual);
}

/// F1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn without_a_detach_key_the_terminal_modes_are_not_changed() {
    let daemon = Daemon::start().await;
    let args = [
        "run",
        "--detach-key",
        "none",
        "-c",
        "echo ready; exec sleep 60",
    ];
    let mut run = daemon.at_terminal(args, None);
    run.shows("ready").await;
    assert_eq!(run.modes(), Modes::Usual);
    run.press(CTRL_C);
    assert_eq!(run.exit().await, Some(130));
}
