//! Signals, timeouts and disconnects that end a run and its task.

use std::process::Stdio;

use heeler_tests::{
    Daemon, Process, eventually_some,
    outcome::{proof_of, proven},
    v1::*,
    within,
};
use nix::sys::signal::Signal;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Child,
};

use super::{ended, reads, run, send, the_task};

/// C1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_signal_is_forwarded_and_the_commands_own_exit_code_is_used() {
    let daemon = Daemon::start().await;
    for (signal, name) in [(Signal::SIGINT, "INT"), (Signal::SIGTERM, "TERM")] {
        let script = format!(
            "trap 'echo bye; exit 9' {name}; echo ready; while :; do sleep 60 & wait; done"
        );
        let mut command = run(&daemon, &["-c", &script]);
        reads(command.stdout.as_mut().unwrap(), "ready\n").await;
        send(&command, signal);
        let result = ended(command).await;
        let found = (result.code, &*result.stdout, &*result.stderr);
        assert_eq!(found, (Some(9), "bye\n", ""), "{name}");
        let task = daemon.api().await.all().await.remove(0);
        assert_eq!(task.state(), TaskState::Cancelled);
        let stop = task.stop.unwrap();
        assert_eq!(stop.actor.unwrap().name, "heeler run");
        proven(stop.proof.as_ref());
    }
}

/// C2, C16
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_second_signal_kills_a_command_that_ignored_the_first() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = "trap '' INT; echo ready; while :; do sleep 60; done";
    let mut command = run(&daemon, &["--grace", "10m", "-c", script]);
    reads(command.stdout.as_mut().unwrap(), "ready\n").await;
    let task = the_task(&api).await;
    let leader = Process::now(task.leader.unwrap().pid).unwrap();
    send(&command, Signal::SIGINT);
    let mut watch = api.watch_after(0).await;
    watch
        .until(|event| event.r#type() == TaskEventType::Stopping)
        .await;
    assert!(leader.is_alive());
    send(&command, Signal::SIGINT);
    let result = ended(command).await;
    assert_eq!(result.code, Some(137), "{result:?}");
    assert!(leader.is_gone());
    assert_eq!(api.task(&task.id).await.state(), TaskState::Cancelled);
}

/// X1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_queued_run_can_be_interrupted() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    daemon.spawned(&["--queue", "q", "--", "sleep", "60"]).await;
    let command = run(&daemon, &["--queue", "q", "--", "echo", "never"]);
    let mut watch = api.watch_after(0).await;
    let is_queued = |task: &BackgroundTask| task.state() == TaskState::Queued;
    watch
        .until(|event| event.task.as_ref().is_some_and(is_queued))
        .await;
    send(&command, Signal::SIGTERM);
    let result = ended(command).await;
    let found = (result.code, &*result.stdout, &*result.stderr);
    let waiting = "is waiting for queue q: 0 before this one, held by ";
    assert_eq!((found.0, found.1), (Some(143), ""));
    assert!(found.2.contains(waiting), "{result:?}");
    assert_eq!(found.2.lines().count(), 1, "{result:?}");
}

/// X1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_run_that_waits_for_a_key_reports_it_and_is_listed_last() {
    let daemon = Daemon::start().await;
    let args = ["--exclusive", "dev", "--", "sleep", "60"];
    let holder = daemon.spawned(&args).await;
    let args = ["--exclusive", "dev", "--on-held", "queue", "--", "true"];
    let mut command = run(&daemon, &args);
    let mut result = BufReader::new(command.stderr.take().unwrap()).lines();
    let line = within("the message about the wait", result.next_line()).await;
    let line = line.unwrap().unwrap();
    assert!(
        line.ends_with(&format!(
            "is waiting for key dev: 0 before this one, held by {holder}"
        )),
        "{line}"
    );
    let ps = daemon.heeler(["ps"]).await.ok().stdout;
    let rows: Vec<&str> = ps.lines().skip(1).collect();
    assert!(rows[0].starts_with(&holder) && rows[0].contains("RUNNING"));
    assert!(
        rows[1].contains("QUEUED") && rows[1].contains("k:dev"),
        "{ps}"
    );
    daemon.heeler(["cancel", &holder]).await.ok();
    assert_eq!(ended(command).await.code, Some(0));
}

/// C16
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_chosen_stop_signal_is_sent_instead_of_the_forwarded_one() {
    let daemon = Daemon::start().await;
    let script = "trap 'exit 4' USR1; echo ready; while :; do sleep 60 & wait; done";
    let mut command = run(&daemon, &["--stop-signal", "USR1", "-c", script]);
    reads(command.stdout.as_mut().unwrap(), "ready\n").await;
    send(&command, Signal::SIGINT);
    assert_eq!(ended(command).await.code, Some(4));
}

/// C3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_closed_stdout_cancels_the_task_and_exits_as_by_sigpipe() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut command = run(&daemon, &["--", "yes"]);
    let task = the_task(&api).await;
    reads(command.stdout.as_mut().unwrap(), "y\ny\n").await;
    drop(command.stdout.take());
    let result = ended(command).await;
    assert_eq!((result.code, &*result.stderr), (Some(141), ""));
    let task = api.task(&task.id).await;
    assert_eq!(task.state(), TaskState::Cancelled);
    proof_of(&task);
}

/// F4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_foreground_timeout_can_cancel_the_task() {
    let daemon = Daemon::start().await;
    let args = "run --foreground-timeout 300ms --on-foreground-timeout cancel -- sleep 60";
    let result = daemon.heeler(args.split(' ')).await;
    assert_eq!(result.code, Some(143), "{result:?}");
    assert!(
        result.stderr.ends_with("was stopped: timeout\n"),
        "{result:?}"
    );
    let task = daemon.api().await.all().await.remove(0);
    assert_eq!(task.state(), TaskState::TimedOut);
}

/// O8, C11
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_kill_by_the_output_limit_is_explained_by_every_command() {
    let daemon = Daemon::start().await;
    let args = "run --max-output 256KiB --on-output-limit kill -- yes";
    let result = daemon.heeler(args.split(' ')).await;
    let cause = "killed by SIGKILL: it wrote too much output\n";
    let id = daemon.api().await.all().await.remove(0).id;
    assert_eq!(result.code, Some(137));
    let expected = format!("heeler: {id}: FAILED, {cause}");
    assert!(result.stderr.ends_with(&expected), "{}", result.stderr);
    let waited = daemon.heeler(["wait", &id]).await;
    let expected = (Some(137), format!("{id}  FAILED, {cause}"));
    assert_eq!((waited.code, waited.stdout), expected);
    let ended = daemon.heeler(["events", "--type", "ended"]).await.ok();
    assert!(ended.stdout.ends_with(cause), "{ended:?}");
    let listed = daemon.heeler(["ps", "-a"]).await.ok();
    assert!(listed.stdout.contains("output limit"), "{listed:?}");
}

/// F6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_killed_run_leaves_its_task_to_on_disconnect() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut command = run(&daemon, &["--reattach-window", "3s", "--", "sleep", "60"]);
    let task = the_task(&api).await;
    command.kill().await.unwrap();
    let task = api.ended(&task.id).await;
    assert_eq!(task.state(), TaskState::Cancelled);
    assert_eq!(task.end_reason(), EndReason::ClientDisconnected);
}

/// F6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn sighup_ends_the_run_and_leaves_the_task_to_on_disconnect() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let args = "--on-disconnect detach --reattach-window 3s -- sleep 60";
    let args: Vec<&str> = args.split(' ').collect();
    let command = run(&daemon, &args);
    let task = the_task(&api).await;
    send(&command, Signal::SIGHUP);
    assert_eq!(ended(command).await.code, Some(129));
    let mut watch = api.watch_after(0).await;
    let detached = watch
        .until(|event| event.r#type() == TaskEventType::Detached)
        .await;
    let detached = detached.last().unwrap().task.clone().unwrap();
    assert_eq!(
        (&detached.id, detached.state()),
        (&task.id, TaskState::Running)
    );
    let cause = detached.detachment.unwrap().cause();
    assert_eq!(cause, DetachCause::ClientDisconnected);
}

/// F6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn under_nohup_sighup_is_ignored() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let (mut gate, path) = (daemon.gate("gate"), daemon.file("gate"));
    let mut command = daemon.wrapper("nohup");
    command.arg(daemon.program()).args(["run", "-c"]);
    command.arg(format!("read line < {path}; exit 6"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let command = command.spawn().unwrap();
    the_task(&api).await;
    send(&command, Signal::SIGHUP);
    gate.write("\n");
    assert_eq!(ended(command).await.code, Some(6));
}

/// F6, R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn without_a_daemon_the_run_can_still_be_interrupted() {
    let mut daemon = Daemon::start().await;
    let args = ["--reattach-window", "3s", "--", "sleep", "60"];
    let mut command = run(&daemon, &args);
    let task = the_task(&daemon.api().await).await;
    daemon.kill9();
    assert_eq!(
        ended_by_repeated(&mut command, Signal::SIGINT).await,
        Some(130)
    );
    daemon.restart().await;
    let task = daemon.api().await.ended(&task.id).await;
    assert_eq!(task.end_reason(), EndReason::ClientDisconnected);
}

/// Sends a signal repeatedly until the command ends, and returns its exit code.
async fn ended_by_repeated(command: &mut Child, signal: Signal) -> Option<i32> {
    let ended = eventually_some("the command ends", || {
        let ended = command.try_wait().unwrap();
        if ended.is_none() {
            send(command, signal);
        }
        ended
    });
    ended.await.code()
}

/// O10
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_reader_that_pauses_does_not_block_signals() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut command = run(&daemon, &["--", "yes"]);
    let task = the_task(&api).await;
    // Unread, this much fills the pipe, and the run waits for space in it.
    api.output_reaches(&task.id, 1 << 20).await;
    send(&command, Signal::SIGTERM);
    let ended = api.ended(&task.id).await;
    assert_eq!(ended.state(), TaskState::Cancelled);
    // The run still waits to write the rest.
    ended_by_repeated(&mut command, Signal::SIGTERM).await;
}
