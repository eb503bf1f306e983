//! docs/sdk/rust.md: its programs are those of sdk-rust/examples, and print what the page says.

use std::{fs, process::Stdio};

use heeler_tests::{Daemon, SpawnRequestExt as _, binary, cli::CommandResult, shell, within};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

/// In the order of the page.
const RECIPES: [&str; 8] = [
    "exit_code",
    "cancel",
    "follow",
    "watch",
    "errors",
    "run",
    "silent_agent",
    "ensure",
];

/// The code blocks of a language on the page, in order.
fn blocks(language: &str) -> Vec<String> {
    let page = fs::read_to_string(binary::workspace().join("docs/sdk/rust.md")).unwrap();
    let begin = format!("```{language}\n");
    let rest = page.split(&begin).skip(1);
    rest.map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

fn program(daemon: &Daemon, name: &str) -> Command {
    let mut command = Command::new(binary::example(name));
    command.env("HEELER_ADDR", daemon.address());
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

#[test]
fn the_page_shows_the_source_of_the_examples() {
    let shown = blocks("rust");
    assert_eq!(shown.len(), RECIPES.len());
    for (name, shown) in RECIPES.iter().zip(shown) {
        let path = binary::workspace().join(format!("sdk-rust/examples/{name}.rs"));
        assert_eq!(fs::read_to_string(path).unwrap(), shown, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn each_example_prints_what_the_page_says() {
    let expected = blocks("text");
    assert_eq!(expected.len(), RECIPES.len());
    for (name, expected) in RECIPES.iter().zip(expected) {
        let daemon = Daemon::start().await;
        if *name == "watch" {
            continue;
        }
        let output = within(name, program(&daemon, name).output()).await.unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        // The method of the proof depends on the machine.
        let printed = printed.replace("NoChildren", "CgroupEmpty");
        assert_eq!(
            printed,
            expected,
            "{name}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

/// U5: by the example, with no daemon to be found and none to be started.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_client_starts_the_daemon_of_the_command_or_says_why_not() {
    let mut daemon = Daemon::builder().own_program().prepare();
    let example = |daemon: &Daemon| {
        let mut command = daemon.wrapper(binary::example("silent_agent").to_str().unwrap());
        command.env_remove("HEELER_ADDR").stdin(Stdio::null());
        command
    };
    let mut missing = example(&daemon);
    missing.env("HEELER_BINARY", "/no/such/heeler");
    let refused = CommandResult::of(missing).await;
    assert!(refused.stderr.contains("/no/such/heeler"), "{refused:?}");

    let mut starting = example(&daemon);
    starting.env("HEELER_BINARY", daemon.program());
    let started = CommandResult::of(starting).await.ok();
    assert_eq!(started.stdout, blocks("text")[6]);
    daemon.learn_epoch().await;
    daemon.heeler(["shutdown", "--stop-tasks"]).await.ok();
}

/// E2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_watch_example_resumes_across_a_crash() {
    let mut daemon = Daemon::start().await;
    let job = |name: &str, script: &str| shell(script).with_name(name).with_session("nightly");
    let mut watch = program(&daemon, "watch")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    daemon.api().await.start(job("first", "exit 0")).await;
    let mut printed = within("a line", lines.next_line()).await.unwrap().unwrap() + "\n";
    daemon.kill9();
    daemon.restart().await;
    daemon.api().await.start(job("last", "exit 3")).await;
    printed += &(within("a line", lines.next_line()).await.unwrap().unwrap() + "\n");
    assert!(
        within("the end of the example", watch.wait())
            .await
            .unwrap()
            .success()
    );
    assert_eq!(printed, blocks("text")[3]);
}
