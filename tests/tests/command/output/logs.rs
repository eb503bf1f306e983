//! `heeler logs` of one task: parts of its output, searches, the summary.

use heeler_tests::Daemon;

/// A finished task that ran this script.
async fn finished(daemon: &Daemon, script: &str) -> String {
    let id = daemon.spawned(&["-c", script]).await;
    daemon.api().await.ended(&id).await;
    id
}

async fn logs(daemon: &Daemon, args: &[&str]) -> String {
    let args = ["logs"].iter().chain(args);
    daemon.heeler(args).await.ok().stdout
}

/// O1, O13
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn logs_prints_the_first_and_the_last_lines_and_the_number_of_the_others() {
    let daemon = Daemon::start().await;
    let id = finished(&daemon, "seq 1 100").await;
    assert_eq!(logs(&daemon, &["--head", "2", &id]).await, "1\n2\n");
    assert_eq!(logs(&daemon, &["-n", "2", &id]).await, "99\n100\n");
    assert_eq!(logs(&daemon, &["--lines", "0", &id]).await, "");
    let both = daemon.heeler(["logs", "--head", "2", "-n", "1", &id]);
    let both = both.await.ok();
    assert_eq!(both.stdout, "1\n2\n100\n");
    assert!(
        both.stderr
            .contains("97 lines (284 B) of output are left out"),
        "{both:?}"
    );
    let bad = daemon.heeler(["logs", "--head", "2", "-n", "1", "--stderr", &id]);
    assert_eq!(bad.await.code, Some(2));
}

/// O4, O12
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn logs_searches_by_expression_with_context_inverted_and_in_one_stream() {
    let daemon = Daemon::start().await;
    let script = "seq 1 20; echo oops >&2; echo Error: 21";
    let id = finished(&daemon, script).await;
    let found = async |args: &[&str]| {
        let all: Vec<&str> = args.iter().copied().chain([id.as_str()]).collect();
        logs(&daemon, &all).await.replace('\n', " ")
    };
    assert_eq!(found(&["--grep", "^1.*5$"]).await, "15 ");
    assert_eq!(found(&["--grep", "(?i)error"]).await, "Error: 21 ");
    assert_eq!(
        found(&["--grep", "^5$", "-A", "1", "-B", "2"]).await,
        "3 4 5 6 "
    );
    assert_eq!(found(&["--grep", "^5$", "-C", "1"]).await, "4 5 6 ");
    assert_eq!(
        found(&["--grep", "^(4|7|20)$", "-B", "1", "-A", "1", "--stdout"]).await,
        "3 4 5 6 7 8 -- 19 20 Error: 21 "
    );
    assert_eq!(
        found(&["-n", "4", "--grep", "^(4|20)$", "-C", "1", "--stdout"]).await,
        "5 -- 19 20 Error: 21 "
    );
    assert_eq!(
        found(&["--grep", "^[12]", "-v", "--stdout"]).await,
        "3 4 5 6 7 8 9 Error: 21 "
    );
    assert_eq!(
        found(&["--grep", "1", "-n", "2", "--stdout"]).await,
        "19 Error: 21 "
    );
    assert_eq!(found(&["--grep", "1", "--head", "2"]).await, "1 10 ");
    assert_eq!(found(&["--stderr", "--grep", "o"]).await, "oops ");
    assert_eq!(found(&["--grep", "nowhere", "-B", "3"]).await, "");
    assert_eq!(found(&["-f", "--grep", "nowhere", "-B", "3"]).await, "");
    let bad = daemon.heeler(["logs", "--grep", "(", &id]).await;
    assert_eq!(bad.code, Some(2), "{bad:?}");
    assert!(bad.stderr.contains("--grep"), "{bad:?}");
}

/// O5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn logs_removes_terminal_escape_sequences_on_request() {
    let daemon = Daemon::start().await;
    let id = finished(
        &daemon,
        r"printf '\033[31mred\033[0m\n\033]0;title\007plain\n'",
    )
    .await;
    assert!(logs(&daemon, &[&id]).await.contains('\x1b'));
    assert_eq!(logs(&daemon, &["--strip-ansi", &id]).await, "red\nplain\n");
    let found = logs(&daemon, &["--strip-ansi", "--grep", "^red$", &id]).await;
    assert_eq!(found, "red\n");
}

/// O12: the last line of a live task may have no end yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_search_of_a_live_task_ends_with_its_present_output() {
    let daemon = Daemon::start().await;
    let id = daemon
        .spawned(&["-c", "echo one; printf tw; sleep 60"])
        .await;
    daemon.api().await.output_reaches(&id, 6).await;
    assert_eq!(logs(&daemon, &["--grep", "o", &id]).await, "one\n");
    assert_eq!(logs(&daemon, &["--grep", "x", "-B", "5", &id]).await, "");
    assert_eq!(logs(&daemon, &[&id]).await, "one\ntw");
}

/// E5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_summary_of_an_end_is_the_same_in_logs_and_inspect() {
    let daemon = Daemon::start().await;
    let id = finished(&daemon, "echo working; echo 'error: broken' >&2; exit 3").await;
    let summary = logs(&daemon, &["--summary", &id]).await;
    for text in ["FAILED: exit code 3", "error: broken", "heeler logs"] {
        assert!(summary.contains(text), "{summary}");
    }
    let inspected = daemon.heeler(["inspect", &id]).await.ok().stdout;
    let quoted: Vec<&str> = inspected
        .lines()
        .filter_map(|line| line.strip_prefix("  | "))
        .collect();
    assert_eq!(quoted, summary.lines().collect::<Vec<_>>());
    let json = daemon.heeler(["inspect", "--json", &id]).await.ok().json();
    assert_eq!(json["summary"], summary.trim_end());
    let live = daemon.spawned(&["--", "sleep", "60"]).await;
    let none = daemon.heeler(["logs", "--summary", &live]).await;
    assert_eq!(none.code, Some(1));
    assert!(none.stderr.contains("not finished"), "{none:?}");
}
