//! A capture that failed: every command that shows the task says so, and none exits with 0.

use heeler_tests::{SmallDisk, cli::CommandResult, v1::*};

/// Writes more than the disk has room for, and exits with 0.
const TOO_MUCH: &str = "head -c 40000000 /dev/zero; exit 0";

#[track_caller]
fn assert_reported(result: &CommandResult, what: &str) {
    let stderr = &result.stderr;
    assert_eq!(result.code, Some(1), "{what}: {stderr}");
    assert!(
        stderr.contains("output is missing") && stderr.contains("No space left"),
        "{what}: {stderr}"
    );
}

/// F14
#[tokio::test]
async fn a_failed_capture_is_reported_with_its_reason_and_never_exits_with_0() {
    let Some((_disk, daemon)) = SmallDisk::with_daemon(24).await else {
        return;
    };
    let run = daemon.heeler(["run", "-c", TOO_MUCH]).await;
    assert_reported(&run, "run");
    let listed = daemon.heeler(["ps", "-a"]).await.ok().stdout;
    let id = listed
        .split_whitespace()
        .find(|word| word.starts_with("shell-"));
    let id = id.expect("the task is listed").to_owned();
    daemon.heeler(["rm", &id]).await.ok();

    let id = daemon.spawned(&["-c", TOO_MUCH]).await;
    let attach = daemon.heeler(["attach", &id]).await;
    assert_reported(&attach, "attach");
    let wait = daemon.heeler(["wait", &id]).await;
    assert_reported(&wait, "wait");
    let task = daemon.api().await.task(&id).await;
    assert_eq!(task.state(), TaskState::Failed);
    for args in [
        &["logs", &id][..],
        &["logs", "-f", &id],
        &["logs", "--tail", "1", &id],
    ] {
        let logs = daemon.heeler(args).await;
        assert_reported(&logs, &format!("{args:?}"));
    }
    // Room for the last entries of the journal.
    daemon.heeler(["rm", &id]).await.ok();
}
