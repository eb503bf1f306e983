//! Patterns in output: `--match` of spawn, run, wait and update, and what events and inspect tell of them.

use std::process::Stdio;

use heeler_tests::{Daemon, within};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::{door, open};

/// O16
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn wait_for_a_line_prints_it_and_its_exit_code_tells_a_timeout_from_an_end() {
    let daemon = Daemon::start().await;
    let closed = door(&daemon, "door");
    let script = format!("{closed}; echo Listening on :80; sleep 60");
    let id = daemon.spawned(&["--name", "dev", "-c", &script]).await;
    let wait = ["wait", "--match", "Listening on", "dev"];
    let early = daemon.heeler(wait.iter().chain(&["--timeout", "0s"])).await;
    assert_eq!((early.code, &*early.stdout), (Some(124), ""), "{early:?}");
    assert!(early.stderr.contains("timeout passed"), "{early:?}");
    let waiting = daemon.heeler(wait);
    let (found, ()) = tokio::join!(within("the line", waiting), async { open(&daemon, "door") });
    assert_eq!(found.ok().stdout, "Listening on :80\n");
    let quiet = daemon.spawned(&["-c", "echo nothing"]).await;
    let any = daemon.heeler(["wait", "--any", "--match", "^Listen", &quiet, &id]);
    assert_eq!(any.await.ok().stdout, format!("{id}  Listening on :80\n"));
    let never = daemon
        .heeler(["wait", "--match", "Listening", &quiet])
        .await;
    assert_eq!(never.code, Some(1), "{never:?}");
    assert!(never.stderr.contains("finished without"), "{never:?}");
    let bad = daemon.heeler(["wait", "--match", "(", &id]).await;
    assert_eq!(bad.code, Some(2), "{bad:?}");
    assert!(bad.stderr.contains("--match"), "{bad:?}");
}

/// O16
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn patterns_of_spawn_and_update_are_told_by_events_and_inspect() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = "echo Ready; echo error: 7; sleep 60";
    let id = daemon
        .spawned(&["--match", "ready=^Ready", "-c", script])
        .await;
    let mut command = daemon.cli(["events", "-f", "--type", "matched"]);
    let mut events = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(events.stdout.take().unwrap()).lines();
    let mut next = async || {
        within("an event", lines.next_line())
            .await
            .unwrap()
            .unwrap()
    };
    assert!(next().await.ends_with("ready: Ready"));
    let updated = daemon
        .heeler(["update", &id, "--match", "error=^error: \\d+"])
        .await
        .ok();
    assert_eq!(updated.stdout, "ready=^Ready\nerror=^error: \\d+\n");
    assert!(next().await.ends_with("error: error: 7"));
    let card = daemon.heeler(["inspect", &id]).await.ok().stdout;
    assert!(card.contains("ready=^Ready: 1 line, at offset 0"), "{card}");
    assert!(
        card.contains("error=^error: \\d+: 1 line, at offset 6"),
        "{card}"
    );
    let removed = daemon.heeler(["update", &id, "--remove-match", "ready"]);
    assert_eq!(removed.await.ok().stdout, "error=^error: \\d+\n");
    let json = ["update", "--json", &id, "--remove-match", "ready"];
    let json = daemon.heeler(json).await.ok().json();
    assert_eq!(
        json["task"]["spec"]["output"]["patterns"][0]["name"],
        "error"
    );
    daemon.heeler(["cancel", "--force", &id]).await.ok();
    api.ended(&id).await;
    let late = daemon.heeler(["update", &id, "--match", "a=b"]).await;
    assert_eq!(late.code, Some(1), "{late:?}");
    for args in [
        ["update", &id, "--match", "a=("],
        ["spawn", "--match", "a=(", "true"],
    ] {
        let bad = daemon.heeler(args).await;
        assert_eq!(bad.code, Some(2), "{bad:?}");
        assert!(bad.stderr.contains("--match"), "{bad:?}");
    }
}

/// O16
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn run_looks_for_its_patterns_too() {
    let daemon = Daemon::start().await;
    let run = daemon.heeler(["run", "--match", "hit=b", "-c", "echo abc"]);
    assert_eq!(run.await.ok().stdout, "abc\n");
    let events = daemon.heeler(["events", "--type", "matched"]).await.ok();
    assert!(events.stdout.contains("hit: abc"), "{events:?}");
}
