//! Journals that cannot be used.

use std::{fs, os::unix::fs::PermissionsExt};

use heeler_tests::{Daemon, containment, shell};

use super::refused;

/// A daemon that has ended, with one finished task: its journal, and the id of the task.
async fn with_history() -> (Daemon, std::path::PathBuf, String) {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = api.start(shell("echo kept")).await.id;
    api.ended(&id).await;
    daemon.terminate();
    let journal = daemon.state_dir().join("journal.db");
    (daemon, journal, id)
}

/// R4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_unusable_journal_is_refused_by_name_and_not_changed() {
    let (mut daemon, journal, id) = with_history().await;
    let good = fs::read(&journal).unwrap();
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        bytes
    };
    let cases = [
        ("not a database", b"remember the milk\n".repeat(300)),
        (
            "cut short",
            changed(&|bytes| bytes.truncate(bytes.len() / 2)),
        ),
        (
            "cut in the first page",
            changed(&|bytes| bytes.truncate(50)),
        ),
        ("another program's", changed(&|bytes| bytes[68..72].fill(1))),
        ("of a later version", changed(&|bytes| bytes[62] = 1)),
        (
            "a damaged schema",
            changed(&|bytes| bytes[100..200].fill(0xff)),
        ),
        ("emptied", Vec::new()),
    ];
    for (what, bytes) in cases {
        fs::write(&journal, &bytes).unwrap();
        let stderr = refused(&daemon).await;
        let dir = daemon.state_dir();
        assert!(stderr.contains(dir.to_str().unwrap()), "{what}: {stderr}");
        assert_eq!(fs::read(&journal).unwrap(), bytes, "{what}: changed");
    }
    fs::remove_file(&journal).unwrap();
    assert!(refused(&daemon).await.contains("no journal"));
    assert!(!journal.exists(), "a new journal was created");
    fs::create_dir(&journal).unwrap();
    let stderr = refused(&daemon).await;
    assert!(stderr.contains(journal.to_str().unwrap()), "{stderr}");
    fs::remove_dir(&journal).unwrap();

    fs::write(&journal, &good).unwrap();
    daemon.restart().await;
    let api = daemon.api().await;
    assert_eq!(api.output(&id).await, b"kept\n");
}

/// R4: run as a user who may not read it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_journal_without_read_permission_is_refused_by_name() {
    if containment::reruns_as_nobody(concat!(
        module_path!(),
        "::a_journal_without_read_permission_is_refused_by_name"
    )) {
        return;
    }
    let (mut daemon, journal, _) = with_history().await;
    fs::set_permissions(&journal, PermissionsExt::from_mode(0o000)).unwrap();
    let stderr = refused(&daemon).await;
    assert!(stderr.contains(journal.to_str().unwrap()), "{stderr}");
    assert!(stderr.contains("ermission denied"), "{stderr}");
    fs::set_permissions(&journal, PermissionsExt::from_mode(0o600)).unwrap();
    daemon.restart().await;
}
