//! The commands of the README run as printed. Its programs are run by the tests of the SDKs.

use std::fs;

use heeler_tests::{Authority, binary, grpcurl};

use super::examples::{UNTIL_INTERRUPTED, builder, prepare_home, programs, run};

/// The first words of each shell block, in order, and the place where it is run.
const BLOCKS: [(&str, Runner); 8] = [
    ("cargo run --release", Runner::Ci),
    ("mkdir -p ~/.config/systemd/user", Runner::Ci),
    ("id=$(heeler spawn", Runner::Here),
    ("heeler run --queue", Runner::Here),
    ("sock=$(heeler start)", Runner::Here),
    ("(cd sdk-typescript", Runner::Sdk),
    ("heeler serve --listen", Runner::Here),
    ("heeler serve --http", Runner::Here),
];

/// The place where a block is run.
#[derive(Debug, PartialEq)]
enum Runner {
    /// By a test of this file.
    Here,
    /// By the tests of the SDK.
    Sdk,
    /// The build is made by CI; the unit that the other installs is verified by `installed_files`.
    Ci,
}

/// The shell block that begins so.
fn block(begin: &str) -> String {
    let readme = fs::read_to_string(binary::workspace().join("README.md")).unwrap();
    let blocks: Vec<&str> = readme.split("```sh\n").skip(1).collect();
    assert_eq!(blocks.len(), BLOCKS.len(), "a block that no test runs");
    for (block, (first, _)) in blocks.iter().zip(&BLOCKS) {
        assert!(block.starts_with(first), "{first}: {block}");
    }
    let at = BLOCKS.iter().position(|(first, _)| *first == begin);
    assert_eq!(BLOCKS[at.unwrap()].1, Runner::Here);
    blocks[at.unwrap()].split("```").next().unwrap().to_owned()
}

/// U2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_first_use_runs_as_printed() {
    let programs = programs();
    let daemon = builder(&programs).start().await;
    prepare_home(&daemon, &programs);
    let script = block("id=$(heeler spawn")
        // Ends at Ctrl-C.
        .replace("heeler logs", &format!("! {UNTIL_INTERRUPTED} heeler logs"))
        // Needs a terminal.
        .replace("heeler top ", "true ")
        // Looks at the processes of other tests too.
        .replace("heeler doctor ", "heeler doctor || true ")
        // Its exit code is shown, and is that of the task.
        .replace("heeler wait", "set +e; heeler wait");
    let result = run(&daemon, &format!("set -e; {script}")).await.ok();
    assert!(result.stdout.contains("working\n"), "{result:?}");
    assert!(result.stdout.contains("proven gone"), "{result:?}");
    assert!(result.stdout.ends_with("\n3\n"), "{result:?}");
    let tasks = daemon.api().await.all().await;
    assert_eq!(tasks.len(), 8, "six times spawn or restart, and run twice");
}

/// U2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_queue_of_builds_runs_as_printed() {
    let programs = programs();
    let daemon = builder(&programs).start().await;
    let script = block("heeler run --queue");
    run(&daemon, &format!("set -e; {script}")).await.ok();
    let queues = daemon.api().await.queues().await;
    assert_eq!((&*queues[0].name, queues[0].slots), ("build", 2));
}

/// U2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_calls_by_grpcurl_run_as_printed() {
    let Some(grpcurl) = grpcurl::program() else {
        return;
    };
    let programs = programs();
    std::os::unix::fs::symlink(grpcurl, programs.path().join("grpcurl")).unwrap();
    let daemon = builder(&programs).start().await;
    let script = block("sock=$(heeler start)");
    let result = run(&daemon, &format!("set -e; {script}")).await.ok();
    assert!(result.stdout.contains("\"script\": \"make\""), "{result:?}");
}

/// U2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_daemons_over_the_network_run_as_printed() {
    let programs = programs();
    let daemon = builder(&programs).prepare();
    let authority = Authority::new(&daemon.path(""), "test");
    let files = authority.certify("localhost");
    let home = daemon.home();
    fs::copy(files.certificate, home.join("cert.pem")).unwrap();
    fs::copy(files.key, home.join("key.pem")).unwrap();
    fs::copy(&authority.certificate, home.join("ca.pem")).unwrap();
    let lines = block("heeler serve --listen").replace(":7117 ", ":0 ");
    let lines: Vec<&str> = lines.lines().collect();
    let [loopback, everywhere, client] = lines[..] else {
        panic!("{lines:?}");
    };
    let served = run(&daemon, &format!("{UNTIL_INTERRUPTED} {loopback}")).await;
    assert!(
        served.stderr.contains("listening on tcp:127.0.0.1:"),
        "{served:?}"
    );
    let client = client.replace("build.example.com:0", "localhost:$port");
    let client = client.replace(
        "--token-file token",
        "--token-file $XDG_STATE_HOME/heeler/token",
    );
    let script = format!(
        "{everywhere} 2>log &
         until grep -q 'listening on tls' log; do kill -0 $! || exit 9; sleep 0.02; done
         port=$(sed -n 's/.*listening on tls:0.0.0.0:\\([0-9]*\\).*/\\1/p' log)
         {client}; code=$?; kill $!; wait $!; exit $code"
    );
    let listed = run(&daemon, &script).await.ok();
    assert!(listed.stdout.starts_with("ID "), "{listed:?}");
}

/// U2, H1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_call_by_curl_runs_as_printed() {
    if std::process::Command::new("curl")
        .arg("-V")
        .output()
        .is_err()
    {
        return heeler_tests::not_installed("curl");
    }
    let programs = programs();
    let daemon = builder(&programs).prepare();
    let lines = block("heeler serve --http");
    let (serve, calls) = lines.split_once('\n').unwrap();
    let serve = serve.replace(":7118", ":0");
    let calls = calls
        .replace(":7118", ":$port")
        .replace("~/.local/state", "$XDG_STATE_HOME");
    let script = format!(
        "{serve} 2>log &
         until grep -q 'containment' log; do kill -0 $! || exit 9; sleep 0.02; done
         port=$(sed -n 's/.*listening on http:..127.0.0.1:\\([0-9]*\\).*/\\1/p' log)
         {calls}
         code=$?; kill $!; wait $!; exit $code",
        calls = calls.trim_end(),
    );
    let called = run(&daemon, &script).await.ok();
    assert!(called.stdout.starts_with(r#"{"tasks":[]"#), "{called:?}");
}
