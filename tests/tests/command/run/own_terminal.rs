//! Tasks with a terminal of their own: `run -t`, `attach`, `send`.

use heeler_tests::{
    Api, Daemon, SpawnRequestExt as _, argv,
    cli::CommandResult,
    outcome::{exit_code, proof_of},
    terminal::Modes,
    v1::*,
    within,
};

use nix::sys::signal::Signal;

use super::the_task;

const CTRL_B: &[u8] = b"\x02";
const CTRL_C: &[u8] = b"\x03";
const CTRL_D: &[u8] = b"\x04";

/// I5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_with_a_terminal_gets_every_key_and_the_terminal_is_left_as_it_was() {
    let daemon = Daemon::start().await;
    let script = "trap 'echo interrupted' INT; test -t 0 && test -t 1 && echo is-a-terminal; \
                  read -r line; echo \"got $line\"; read -r line; echo end; exit 4";
    let mut run = daemon.at_terminal(["run", "-t", "-c", script], None);
    run.shows("is-a-terminal").await;
    run.becomes(Modes::Odd).await;
    run.press(CTRL_C);
    run.shows("interrupted").await;
    run.press(b"hello\r");
    run.shows("got hello").await;
    run.press(CTRL_D);
    run.shows("end").await;
    assert_eq!(run.exit().await, Some(4));
    assert_eq!(run.modes(), Modes::Usual);
}

/// I5, I6, F1: a person leaves a task and comes back to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_detached_terminal_is_attached_to_again() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = "while read -r line; do echo \"got $line\"; done";
    let mut run = daemon.at_terminal(["run", "-t", "-c", script], None);
    run.becomes(Modes::Odd).await;
    let task = the_task(&api).await;
    run.press(b"one\r");
    run.shows("got one").await;
    run.press(CTRL_B);
    assert_eq!(run.exit().await, Some(0));
    assert_eq!(run.modes(), Modes::Usual);
    assert_eq!(api.task(&task.id).await.placement(), Placement::Background);

    let mut attach = daemon.at_terminal(["attach", &task.id], None);
    attach.shows("got one").await;
    attach.press(b"two\r");
    attach.shows("got two").await;
    // A second person only reads, until it says otherwise.
    let mut second = daemon.at_terminal(["attach", &task.id], None);
    second.shows("got two").await;
    second.press(b"three\r");
    second.shows("the input is not passed on").await;
    let mut third = daemon.at_terminal(["attach", "--take-over", &task.id], None);
    third.shows("got two").await;
    third.press(b"four\r");
    third.shows("got four").await;
    attach.press(b"five\r");
    attach.shows("the input is not passed on").await;
    third.press(CTRL_D);
    assert_eq!(third.exit().await, Some(0));
    assert_eq!(exit_code(&api.ended(&task.id).await), 0);
}

/// Asks the terminal twice, reads a key between, and shows the answers and the key in hexadecimal.
const ASKS: &str = r#"stty raw -echo
    read_hex() { dd bs=1 count="$1" 2> /dev/null | od -An -tx1 | tr -d ' \n'; }
    printf '\033[c'; echo "kind $(read_hex 6)."
    while :; do echo "key $(read_hex 1)."; printf '\033[6n'; echo "cursor $(read_hex 6)."; done"#;

/// I5: the answers to earlier queries would be keys for the task.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn queries_are_answered_once_and_not_again_at_an_attach() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut run = daemon.at_terminal(["run", "-t", "-c", ASKS], None);
    run.shows("kind 1b5b3f363263.").await;
    run.press(b"x");
    run.shows("cursor 1b5b373b3952.").await;
    run.press(CTRL_B);
    assert_eq!(run.exit().await, Some(0));
    let id = the_task(&api).await.id;
    for (args, key) in [(&["attach"][..], "y"), (&["attach", "--tail", "100"], "z")] {
        let args: Vec<&str> = args.iter().copied().chain([&*id]).collect();
        let mut attach = daemon.at_terminal(args, None);
        attach.shows("cursor 1b5b373b3952.").await;
        assert!(attach.shown().contains("kind 1b5b3f363263."));
        assert!(!attach.shown().contains("\x1b[c"), "{}", attach.shown());
        attach.press(key.as_bytes());
        let typed = format!("key {:02x}.", key.as_bytes()[0]);
        attach
            .shows(&format!("{typed}\n\x1b[6ncursor 1b5b373b3952."))
            .await;
        attach.press(CTRL_B);
        assert_eq!(attach.exit().await, Some(0));
    }
    // A terminal whose answers are not passed on is asked nothing.
    let reader = daemon.at_terminal(["attach", "--read-only", &id], None);
    reader.shows("key 7a.").await;
    daemon.heeler(["send", &id, "!"]).await.ok();
    reader.shows("key 21.").await;
    daemon.heeler(["send", &id, "answer"]).await.ok();
    reader.shows("cursor 616e73776572.").await;
    assert!(!reader.shown().contains("\x1b[6n"), "{}", reader.shown());
    let output = String::from_utf8(api.output(&id).await).unwrap();
    let keys: Vec<&str> = output
        .lines()
        .filter(|line| line.starts_with("key"))
        .collect();
    assert_eq!(
        keys,
        ["key 78.", "key 79.", "key 7a.", "key 21."],
        "{output:?}"
    );
}

/// The columns of a task's terminal.
async fn columns(api: &Api, id: &str) -> u32 {
    let request = InspectRequest {
        task_id: id.to_owned(),
        include_screen: true,
        ..InspectRequest::default()
    };
    let inspected = api.raw().inspect(request).await.unwrap().into_inner();
    inspected.screen.unwrap().columns
}

async fn columns_become(api: &Api, id: &str, expected: u32) {
    let found = async {
        while columns(api, id).await != expected {
            tokio::time::sleep(heeler_tests::waiting::STEP).await;
        }
    };
    within("another size", found).await;
}

/// I5, I6: the terminal has the size of the client that has the input.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_client_without_the_input_does_not_resize_the_terminal() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = daemon.spawned(&["-t", "--", "cat"]).await;
    let mut first = daemon.at_wide_terminal(100, ["attach", &id]);
    columns_become(&api, &id, 100).await;
    let second = daemon.at_wide_terminal(110, ["attach", &id]);
    columns_become(&api, &id, 110).await;
    first.press(b"mine\r");
    columns_become(&api, &id, 100).await;

    let mut third = daemon.at_wide_terminal(120, ["attach", &id]);
    third.shows("mine").await;
    // The key is handled after the calls before it.
    third.press(CTRL_B);
    assert_eq!(third.exit().await, Some(0));
    assert_eq!(columns(&api, &id).await, 100);

    let fourth = daemon.at_wide_terminal(130, ["attach", "--take-over", &id]);
    columns_become(&api, &id, 130).await;
    drop((first, second, fourth));
    api.kill(&id).await;
}

/// I3: the person is told that the task does not read.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn send_to_a_task_that_does_not_read_says_so_and_has_a_timeout() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = daemon.spawned(&["-i", "--", "sleep", "1000"]).await;
    let large = "x".repeat(100_000);
    let args = |timeout: &'static str| ["send", &id, &large, "--timeout", timeout];
    // As much as there is room for.
    let mut full = None;
    for _ in 0..10 {
        let result = daemon.heeler(args("0")).await;
        if result.code == Some(124) {
            full = Some(result.stderr);
            break;
        }
        assert_eq!(result.code, Some(0), "{result:?}");
    }
    let full = full.expect("the task's room is limited");
    assert!(full.starts_with("heeler: timeout passed; "), "{full}");
    assert!(full.ends_with(" of 100000 bytes are taken\n"), "{full}");

    let result = daemon.heeler(args("2500ms")).await;
    assert_eq!(result.code, Some(124), "{result:?}");
    let expected = "heeler: the task does not read: 0 of 100000 bytes are taken\n\
                    heeler: timeout passed; 0 of 100000 bytes are taken\n";
    assert_eq!(result.stderr, expected);
    let json = daemon.heeler(["send", &id, &large, "--timeout", "0", "--json"]);
    let json = json.await;
    assert_eq!(json.code, Some(124), "{json:?}");
    assert!(json.stderr.contains("\"code\":4"), "{json:?}");
    api.kill(&id).await;
}

/// I5: the alternate screen, the mouse and a hidden cursor of a task that is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_modes_that_a_task_has_changed_are_changed_back_when_it_is_left() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = r"printf '\033[?1049h\033[?1000h\033[?25lready'; exec sleep 1000";
    let back = "\x1b[?25h\x1b[?1000l\x1b[?1049l";
    let mut run = daemon.at_terminal(["run", "-t", "-c", script], None);
    run.shows("ready").await;
    run.press(CTRL_B);
    assert_eq!(run.exit().await, Some(0));
    run.shows(back).await;

    let id = the_task(&api).await.id;
    let mut attach = daemon.at_terminal(["attach", &id], None);
    attach.shows("ready").await;
    attach.press(CTRL_B);
    assert_eq!(attach.exit().await, Some(0));
    attach.shows(back).await;

    let mut read_only = daemon.at_terminal(["attach", "--read-only", &id], None);
    read_only.shows("ready").await;
    read_only.process().signal(Signal::SIGTERM);
    read_only.exit().await;
    read_only.shows(back).await;

    let mut killed = daemon.at_terminal(["attach", &id], None);
    killed.shows("ready").await;
    api.kill(&id).await;
    killed.exit().await;
    killed.shows(back).await;
}

/// I5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_terminal_of_a_background_task_has_the_size_that_was_asked_for() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let args = ["-t", "--size", "100x30", "--", "stty", "size"];
    let id = daemon.spawned(&args).await;
    api.ended(&id).await;
    let shown = daemon.heeler(["logs", &id]).await.ok().stdout;
    assert_eq!(shown.trim(), "30 100");
    for size in ["0x1", "1", "5000x1"] {
        let refused = daemon.heeler(["spawn", "-t", "--size", size, "--", "true"]);
        let refused = refused.await;
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains("--size"), "{refused:?}");
    }
    let piped = daemon.heeler(["run", "-t", "--", "true"]).await;
    assert_eq!(piped.code, Some(2), "{piped:?}");
    assert!(piped.stderr.contains("-t needs a terminal"), "{piped:?}");
}

/// I1, I5, I7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn send_writes_text_keys_and_the_end() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = daemon.spawned(&["-i", "--", "cat"]).await;
    for args in [
        &["one"][..],
        &["two", "--enter"],
        &["--enter"],
        &["three", "--eof"],
    ] {
        let args = ["send", &id]
            .iter()
            .chain(args)
            .copied()
            .collect::<Vec<_>>();
        daemon.heeler(args).await.ok();
    }
    assert_eq!(exit_code(&api.ended(&id).await), 0);
    let logs = daemon.heeler(["logs", &id]).await.ok().stdout;
    assert_eq!(logs, "onetwo\n\nthree");
    let late = daemon.heeler(["send", &id, "x"]).await;
    assert_eq!(late.code, Some(1), "{late:?}");
    assert!(late.stderr.contains("finished"), "{late:?}");

    let id = daemon.spawned(&["-t", "--", "sleep", "60"]).await;
    daemon.heeler(["send", &id, "--key", "C-c"]).await.ok();
    let ended = api.ended(&id).await;
    assert_eq!(ended.state(), TaskState::Failed, "SIGINT: {ended:?}");

    let without = api.start(argv(["sleep", "60"]).with_name("plain")).await.id;
    let refused = daemon.heeler(["send", &without, "--enter"]).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("has no input"), "{refused:?}");
    proof_of(&api.kill(&without).await.task.unwrap());
}

/// I1: input that takes several calls.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn send_with_json_counts_the_bytes_of_all_calls() {
    let daemon = Daemon::start().await;
    let id = daemon.spawned(&["-i", "-c", "cat > /dev/null"]).await;
    std::fs::write(daemon.path("text"), vec![b'x'; 3 << 20]).unwrap();
    let mut send = daemon.cli(["send", &id, "-", "--eof", "--json"]);
    send.stdin(std::fs::File::open(daemon.path("text")).unwrap());
    let sent = CommandResult::of(send).await.ok().json();
    assert_eq!(sent["takenBytes"], 3 << 20, "{sent}");
}
