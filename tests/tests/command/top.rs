//! `heeler top` at a terminal of 80 columns and 24 lines.

use heeler_tests::{
    Daemon, Process, eventually,
    outcome::proof_of,
    process::children_of,
    terminal::{AtTerminal, Modes},
    v1::*,
};
use nix::sys::signal::Signal;

const CTRL_Z: &[u8] = b"\x1a";
const ESCAPE: &[u8] = b"\x1b";
const CTRL_B: &[u8] = b"\x02";
const CTRL_C: &[u8] = b"\x03";

/// `heeler top`, once it shows the initial state.
async fn top(daemon: &Daemon) -> AtTerminal {
    let top = daemon.at_terminal(["top"], None);
    top.has_soon("heeler top").await;
    top
}

/// Ends it with its key: the terminal is as it was.
async fn quit(mut top: AtTerminal) {
    top.press(b"q");
    assert_eq!(top.exit().await, Some(0));
    assert_eq!(top.modes(), Modes::Usual);
    eventually("the screen of before", || top.is_left()).await;
}

/// H6, S10
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_that_starts_elsewhere_appears_and_its_output_is_followed() {
    let daemon = Daemon::start().await;
    let top = top(&daemon).await;
    top.has_soon("0 live").await;
    assert_eq!(top.modes(), Modes::Odd, "raw");
    let (mut gate, path) = (daemon.gate("gate"), daemon.file("gate"));
    let script = format!(
        "printf 'first \\033]0;evil\\007\\033[2J\\n'; read line < {path}; echo second; exec sleep 60"
    );
    let id = daemon.spawned(&["--name", "dev", "-c", &script]).await;
    top.has_soon(&format!("RUNNING {id}")).await;
    top.has_soon(&format!("output of {id}, 1 process, CPU"))
        .await;
    top.has_soon("first").await;
    assert!(!top.has("second"));
    gate.write("\n");
    top.has_soon("first second").await;
    // The command has the sequences as text; the terminal gets none of them.
    assert!(!top.shown().contains("\x1b]0;"), "{:?}", top.shown());
    assert!(!top.shown().contains('\x07'), "{:?}", top.shown());
    quit(top).await;
    let task = daemon.api().await.task(&id).await;
    assert_eq!(task.state(), TaskState::Running);
}

/// H6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_filter_hides_tasks_and_the_order_changes() {
    let daemon = Daemon::start().await;
    let spawned = async |session: &str, name: &str| {
        let args = ["--session", session, "--name", name, "sleep", "60"];
        daemon.spawned(&args).await
    };
    let old = spawned("s1", "zebra").await;
    let new = spawned("s2", "apple").await;
    let mut top = top(&daemon).await;
    let is_above = |top: &AtTerminal, one: &str, other: &str| {
        let lines = (top.line_of(&format!("RUNNING  {one}")), top.line_of(other));
        matches!(lines, (Some(one), Some(other)) if one < other)
    };
    top.has_soon("2 live, by session").await;
    eventually("by session", || is_above(&top, &old, &new)).await;
    top.press(b"s");
    top.has_soon("by newest").await;
    eventually("newest first", || is_above(&top, &new, &old)).await;

    top.press(b"/ZEB\r");
    top.has_soon("filter: ZEB").await;
    top.has_no_longer(&new).await;
    assert!(top.has(&format!("output of {old}")), "{:?}", top.screen());
    top.press(ESCAPE);
    top.has_soon(&new).await;
    top.press(b"?");
    top.has_soon("keys; any key goes back").await;
    top.press(b"q");
    top.has_no_longer("keys; any key goes back").await;
    quit(top).await;
}

/// H6, C14
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_cancel_asks_first_and_shows_the_proof() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = daemon
        .spawned(&["-c", "setsid sleep 60 & echo ready; exec sleep 60"])
        .await;
    let mut top = top(&daemon).await;
    top.has_soon("ready").await;
    top.press(b"c");
    top.has_soon(&format!("cancel {id} with its whole tree? y/n"))
        .await;
    top.press(b"n");
    top.has_soon("not cancelled").await;
    assert_eq!(api.task(&id).await.state(), TaskState::Running);
    top.press(b"cy");
    top.has_soon(&format!("{id} CANCELLED")).await;
    top.has_soon("proven gone").await;
    top.has_soon("0 live").await;
    let task = api.task(&id).await;
    assert_eq!(task.state(), TaskState::Cancelled);
    assert_eq!(
        task.stop.as_ref().unwrap().actor.as_ref().unwrap().name,
        "heeler top"
    );
    proof_of(&task);
    quit(top).await;
}

/// H6, F1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_foreground_task_is_detached() {
    let daemon = Daemon::start().await;
    let mut run = daemon.at_terminal(["run", "-c", "echo ready; exec sleep 60"], None);
    run.shows("ready").await;
    let mut top = top(&daemon).await;
    top.has_soon("fg").await;
    top.press(b"d");
    top.has_soon("; detached").await;
    assert_eq!(run.exit().await, Some(0));
    quit(top).await;
}

/// Attaches to the selected task, whose output has this text: the screen of before is shown.
async fn attach(top: &mut AtTerminal, id: &str, output: &str) {
    top.has_soon(&format!("RUNNING {id}")).await;
    top.press(b"a");
    top.has_soon(&format!("attached to {id}; ctrl-b")).await;
    assert!(top.is_left(), "{:?}", top.screen());
    top.has_soon(output).await;
}

/// H6, I5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_attach_gives_the_keyboard_to_a_terminal_task_until_the_detach_key() {
    let daemon = Daemon::start().await;
    let script = "echo ready; read line; echo \"got $line\"; exec sleep 60";
    let id = daemon.spawned(&["-t", "-c", script]).await;
    let mut top = top(&daemon).await;
    attach(&mut top, &id, "ready").await;
    top.becomes(Modes::Odd).await;
    top.press(b"hello\r");
    top.has_soon("got hello").await;
    top.press(CTRL_B);
    top.has_soon(&format!("{id}: no longer attached")).await;
    assert_eq!(top.modes(), Modes::Odd, "raw");
    assert!(top.has("heeler top: 1 live"), "{:?}", top.screen());
    // The keys are for the screen again.
    top.press(b"?");
    top.has_soon("keys; any key goes back").await;
    top.press(b"q");
    quit(top).await;
    let task = daemon.api().await.task(&id).await;
    assert_eq!(task.state(), TaskState::Running);
}

/// H6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_attach_ends_with_its_task_or_with_ctrl_c_and_the_screen_comes_back() {
    let daemon = Daemon::start().await;
    let (mut gate, path) = (daemon.gate("gate"), daemon.file("gate"));
    let script = format!("echo ready; read line < {path}; exit 3");
    let id = daemon.spawned(&["-c", &script]).await;
    let mut top = top(&daemon).await;
    attach(&mut top, &id, "ready").await;
    top.press(CTRL_C);
    top.has_soon(&format!("{id}: no longer attached, exit status: 130"))
        .await;
    assert_eq!(
        daemon.api().await.task(&id).await.state(),
        TaskState::Running
    );
    attach(&mut top, &id, "ready").await;
    top.becomes(Modes::Keys).await;
    gate.write("\n");
    top.has_soon(&format!("{id}: no longer attached, exit status: 3"))
        .await;
    top.has_soon(&format!("FAILED {id}")).await;
    top.press(b"a");
    top.has_soon(&format!("{id}: already finished")).await;
    quit(top).await;
}

/// H6, F1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_detach_key_of_an_attach_moves_a_foreground_task_to_the_background() {
    let daemon = Daemon::start().await;
    let mut run = daemon.at_terminal(["run", "-c", "echo ready; exec sleep 60"], None);
    run.shows("ready").await;
    let id = daemon.api().await.ids().await[0].clone();
    let mut top = top(&daemon).await;
    attach(&mut top, &id, "moves it to the background").await;
    top.becomes(Modes::Keys).await;
    top.press(CTRL_B);
    assert_eq!(run.exit().await, Some(0));
    top.has_soon(&format!("{id}: no longer attached")).await;
    quit(top).await;
}

/// H6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_signal_while_attached_ends_both_and_restores_the_terminal() {
    let daemon = Daemon::start().await;
    let id = daemon
        .spawned(&["-t", "-c", "echo ready; exec sleep 60"])
        .await;
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGHUP, 129)] {
        let mut top = top(&daemon).await;
        attach(&mut top, &id, "ready").await;
        top.process().signal(signal);
        assert_eq!(top.exit().await, Some(code));
        assert_eq!(top.modes(), Modes::Usual);
        assert!(top.is_left(), "{:?}", top.screen());
    }
    let task = daemon.api().await.task(&id).await;
    assert_eq!(task.state(), TaskState::Running);
}

/// H6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_attach_reaches_the_daemon_of_the_flags_and_a_kill_of_it_leaves_the_terminal_usable() {
    let (other, daemon) = (Daemon::start().await, Daemon::start().await);
    let id = daemon
        .spawned(&["-t", "-c", "echo ready; exec sleep 60"])
        .await;
    let mut top = other.at_terminal(["top", "--addr", &daemon.address()], None);
    attach(&mut top, &id, "ready").await;
    top.becomes(Modes::Odd).await;
    let children = children_of(top.process().pid);
    assert_eq!(children.len(), 1, "{children:?}");
    Process::now(children[0]).unwrap().signal(Signal::SIGKILL);
    top.has_soon(&format!("{id}: no longer attached, signal: 9"))
        .await;
    quit(top).await;
}

/// H6, R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_screen_goes_on_after_a_restart_of_the_daemon() {
    let mut daemon = Daemon::start().await;
    let (mut gate, path) = (daemon.gate("gate"), daemon.file("gate"));
    let script = format!("echo before; read line < {path}; echo after; exec sleep 60");
    let id = daemon.spawned(&["-c", &script]).await;
    let top = top(&daemon).await;
    top.has_soon("before").await;
    daemon.kill9();
    daemon.restart().await;
    gate.write("\n");
    top.has_soon("before after").await;
    let second = daemon.spawned(&["sleep", "60"]).await;
    top.has_soon(&format!("RUNNING {second}")).await;
    assert!(top.has(&format!("RUNNING {id}")), "{:?}", top.screen());
    quit(top).await;
}

/// H6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_terminal_is_restored_after_a_signal() {
    let daemon = Daemon::start().await;
    for (signal, code) in [
        (Signal::SIGTERM, 143),
        (Signal::SIGHUP, 129),
        (Signal::SIGINT, 130),
    ] {
        let mut top = top(&daemon).await;
        // Without a shell that could resume it, the key has no effect.
        top.press(CTRL_Z);
        top.press(b"?");
        top.has_soon("keys; any key goes back").await;
        top.process().signal(signal);
        assert_eq!(top.exit().await, Some(code));
        assert_eq!(top.modes(), Modes::Usual);
        eventually("the screen of before", || top.is_left()).await;
    }
}

/// H6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn without_a_terminal_and_with_json_it_is_refused() {
    let daemon = Daemon::start().await;
    let piped = daemon.heeler(["top"]).await;
    assert_eq!(piped.code, Some(2), "{piped:?}");
    assert!(piped.stderr.contains("ps --watch"), "{piped:?}");
    let json = daemon.heeler(["top", "--json"]).await;
    assert_eq!(json.code, Some(2), "{json:?}");
    assert!(json.stderr.contains("ps --watch --json"), "{json:?}");
}
