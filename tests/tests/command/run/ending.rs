//! What ends a run ends its task, whole.

use std::process::Stdio;

use heeler_tests::{Daemon, Process, eventually_some, v1::*, within};
use nix::sys::signal::Signal;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Child,
};

use super::{ended, reads, run, send, the_task};

/// C1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_signal_is_passed_on_and_the_commands_own_answer_counts() {
    let daemon = Daemon::start().await;
    for (signal, name) in [(Signal::SIGINT, "INT"), (Signal::SIGTERM, "TERM")] {
        let script = format!(
            "trap 'echo bye; exit 9' {name}; echo ready; while :; do sleep 60 & wait; done"
        );
        let mut command = run(&daemon, &["-c", &script]);
        reads(command.stdout.as_mut().unwrap(), "ready\n").await;
        send(&command, signal);
        let said = ended(command).await;
        let found = (said.code, &*said.stdout, &*said.stderr);
        assert_eq!(found, (Some(9), "bye\n", ""), "{name}");
        let task = daemon.api().await.all().await.remove(0);
        assert_eq!(task.state(), TaskState::Cancelled);
        let stop = task.stop.unwrap();
        assert_eq!(stop.actor.unwrap().name, "heeler run");
        assert_eq!(stop.proof.unwrap().survivors, []);
    }
}

/// C2, C16
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_second_signal_kills_what_ignored_the_first() {
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
    let said = ended(command).await;
    assert_eq!(said.code, Some(137), "{said:?}");
    assert!(leader.is_gone());
    assert_eq!(api.task(&task.id).await.state(), TaskState::Cancelled);
}

/// X1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_run_that_waits_for_its_turn_can_be_ended() {
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
    let said = ended(command).await;
    let found = (said.code, &*said.stdout, &*said.stderr);
    let waits = "waits for its turn: queue q\n";
    assert_eq!((found.0, found.1), (Some(143), ""));
    assert!(found.2.ends_with(waits), "{said:?}");
    assert_eq!(found.2.lines().count(), 1, "{said:?}");
}

/// X1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_run_that_waits_for_a_key_says_so_and_is_listed_after_what_runs() {
    let daemon = Daemon::start().await;
    let args = ["--exclusive", "dev", "--", "sleep", "60"];
    let holder = daemon.spawned(&args).await;
    let args = ["--exclusive", "dev", "--on-held", "queue", "--", "true"];
    let mut command = run(&daemon, &args);
    let mut said = BufReader::new(command.stderr.take().unwrap()).lines();
    let line = within("what it waits for", said.next_line()).await;
    let line = line.unwrap().unwrap();
    assert!(line.ends_with("waits for its turn: key dev"), "{line}");
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
async fn a_stop_signal_that_was_chosen_is_sent_instead() {
    let daemon = Daemon::start().await;
    let script = "trap 'exit 4' USR1; echo ready; while :; do sleep 60 & wait; done";
    let mut command = run(&daemon, &["--stop-signal", "USR1", "-c", script]);
    reads(command.stdout.as_mut().unwrap(), "ready\n").await;
    send(&command, Signal::SIGINT);
    assert_eq!(ended(command).await.code, Some(4));
}

/// C3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_command_that_nobody_reads_from_is_ended_as_by_sigpipe() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut command = run(&daemon, &["--", "yes"]);
    let task = the_task(&api).await;
    reads(command.stdout.as_mut().unwrap(), "y\ny\n").await;
    drop(command.stdout.take());
    let said = ended(command).await;
    assert_eq!((said.code, &*said.stderr), (Some(141), ""));
    let task = api.task(&task.id).await;
    assert_eq!(task.state(), TaskState::Cancelled);
    assert_eq!(task.stop.unwrap().proof.unwrap().survivors, []);
}

/// F4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_foreground_timeout_can_end_it() {
    let daemon = Daemon::start().await;
    let args = "run --foreground-timeout 300ms --on-foreground-timeout cancel -- sleep 60";
    let said = daemon.heeler(args.split(' ')).await;
    assert_eq!(said.code, Some(143), "{said:?}");
    assert!(
        said.stderr.ends_with("was stopped: its timeout\n"),
        "{said:?}"
    );
    let task = daemon.api().await.all().await.remove(0);
    assert_eq!(task.state(), TaskState::TimedOut);
}

/// F6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_run_that_is_killed_leaves_its_task_to_the_rule() {
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
async fn a_hang_up_ends_the_command_alone() {
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
    let cause = detached.detached.unwrap().cause();
    assert_eq!(cause, DetachCause::ClientDisconnected);
}

/// F6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn under_nohup_a_hang_up_is_not_heard() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let (mut gate, path) = (daemon.gate("gate"), daemon.file("gate"));
    let heeler = daemon.command();
    let mut command = tokio::process::Command::new("nohup");
    command.arg(heeler.get_program()).args(["run", "-c"]);
    command.arg(format!("read line < {path}; exit 6"));
    command.env_clear().current_dir(daemon.home());
    let set = heeler.get_envs();
    command.envs(set.filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(Stdio::piped()).kill_on_drop(true);
    let command = command.spawn().unwrap();
    the_task(&api).await;
    send(&command, Signal::SIGHUP);
    gate.write("\n");
    assert_eq!(ended(command).await.code, Some(6));
}

/// F6, R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn with_no_daemon_to_ask_the_command_can_still_be_ended() {
    let mut daemon = Daemon::start().await;
    let args = ["--reattach-window", "3s", "--", "sleep", "60"];
    let mut command = run(&daemon, &args);
    let task = the_task(&daemon.api().await).await;
    daemon.kill9();
    assert_eq!(insisted(&mut command, Signal::SIGINT).await, Some(130));
    daemon.restart().await;
    let task = daemon.api().await.ended(&task.id).await;
    assert_eq!(task.end_reason(), EndReason::ClientDisconnected);
}

/// The exit code of a command that is told again and again to end.
async fn insisted(command: &mut Child, signal: Signal) -> Option<i32> {
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
async fn a_reader_that_pauses_does_not_keep_signals_from_being_heard() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut command = run(&daemon, &["--", "yes"]);
    let task = the_task(&api).await;
    // Nobody reads: with this much, the pipe is full, and the command waits for room in it.
    let much = async { while api.output_end(&task.id).await < 1 << 20 {} };
    within("much output", much).await;
    send(&command, Signal::SIGTERM);
    let over = within("the task's end", api.ended(&task.id)).await;
    assert_eq!(over.state(), TaskState::Cancelled);
    // What it wrote is still there, and nobody takes it.
    insisted(&mut command, Signal::SIGTERM).await;
}
