//! Words for tasks: prefixes and names, wherever an id is taken.

use heeler_tests::{Daemon, v1::*};

/// A prefix that no other id of the test has, and whose random part does not begin every id.
fn prefix<'a>(id: &'a str, others: &[&str]) -> &'a str {
    let is_unique = |end: &usize| {
        let (prefix, random) = (&id[..*end], &id["shell-".len()..*end]);
        !"shell-".starts_with(random) && !others.iter().any(|one| one.starts_with(prefix))
    };
    let shortest = (7..id.len()).find(is_unique);
    &id[..shortest.expect("ids differ")]
}

/// U1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_unique_prefix_or_the_name_of_one_live_task_works_as_an_id() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let named = daemon
        .spawned(&["--name", "dev", "-c", "echo hi; sleep 60"])
        .await;
    let other = daemon.spawned(&["--", "sleep", "60"]).await;
    let child = daemon.spawned(&["--parent", "dev", "--", "true"]).await;
    assert_eq!(api.ended(&child).await.spec.unwrap().parent_id, named);
    let short = prefix(&other, &[&named, &child]);
    let random = &short["shell-".len()..];
    for (word, id) in [("dev", &named), (short, &other), (random, &other)] {
        let shown = daemon.heeler(["inspect", "--json", word]).await.ok().json();
        assert_eq!(shown["task"]["id"], id.as_str(), "{word}");
        let waited = daemon.heeler(["wait", word, "--timeout", "0s"]).await;
        assert_eq!(waited.code, Some(124), "{waited:?}");
        daemon.heeler(["detach", word]).await.ok();
    }
    assert_eq!(
        daemon.heeler(["logs", "-n", "1", "dev"]).await.ok().stdout,
        "hi\n"
    );
    daemon.heeler(["cancel", "dev", random]).await.ok();
    for id in [&named, &other] {
        assert_eq!(api.task(id).await.state(), TaskState::Cancelled);
    }
    let result = daemon.heeler(["logs", "dev"]).await;
    assert_eq!(
        result.code,
        Some(3),
        "a finished task has no name: {result:?}"
    );
    assert!(result.stderr.contains(&named), "{result:?}");
    daemon.heeler(["rm", short]).await.ok();
    assert_eq!(daemon.heeler(["inspect", &other]).await.code, Some(3));
}

/// U1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_ambiguous_word_lists_the_candidates_and_changes_nothing() {
    let daemon = Daemon::start().await;
    let args = ["--name", "dev", "--", "sleep", "60"];
    let tasks = [daemon.spawned(&args).await, daemon.spawned(&args).await];
    for word in ["dev", "shell-"] {
        for command in [
            "cancel", "inspect", "logs", "wait", "rm", "restart", "attach",
        ] {
            let result = daemon.heeler([command, word]).await;
            assert_eq!(
                (result.code, &*result.stdout),
                (Some(2), ""),
                "{command}: {result:?}"
            );
            assert!(
                tasks.iter().all(|id| result.stderr.contains(id.as_str())),
                "{result:?}"
            );
        }
    }
    let result = daemon.heeler(["cancel", ""]).await;
    assert_eq!(result.code, Some(2), "an unset variable: {result:?}");
    let api = daemon.api().await;
    for id in &tasks {
        assert_eq!(api.task(id).await.state(), TaskState::Running);
    }
}
