//! Results that are bounded: the id first, both ends of long output, cursors, and what is unread.

use heeler_tests::Daemon;
use serde_json::{Value, json};

use crate::{Mcp, connection::Answer};

/// M3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn long_output_has_its_beginning_its_end_and_a_cursor_for_the_rest() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let run = mcp
        .call("heeler_run", json!({ "command": "seq 1 200000" }))
        .await;
    let id = run.data["id"].as_str().unwrap();
    assert!(run.text.starts_with(id), "{}", &run.text[..80]);
    assert!(run.text.len() < 20_000, "{}", run.text.len());
    run.has("--- output\n1\n2\n").has("\n200000");
    let omitted = run.data["omitted_bytes"].as_u64().unwrap();
    let note = run.data["output"].as_str().unwrap();
    assert!(note.contains("omitted here"), "{note}");

    // The omitted part, page by page, is all that is missing.
    let shown = run.data["output"].as_str().unwrap();
    let (head, tail) = shown.split_once("[… ").unwrap();
    let tail = tail.split_once("…]\n").unwrap().1;
    let mut cursor = run.data["omitted_cursor"].as_str().unwrap().to_owned();
    let mut middle = String::new();
    while (middle.len() as u64) < omitted {
        let arguments = json!({ "id": id, "cursor": cursor, "max_bytes": 65536 });
        let page = mcp.call("heeler_output", arguments).await;
        middle += page.data["output"].as_str().unwrap();
        cursor = page.data["next_cursor"].as_str().unwrap().to_owned();
    }
    middle.truncate(omitted as usize);
    let all: String = (1..=200_000).map(|n| format!("{n}\n")).collect();
    assert!(
        format!("{head}{middle}{tail}") == all,
        "{} {}",
        head.len(),
        tail.len()
    );
}

/// M3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_connection_is_given_each_part_of_an_output_once() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let gate = daemon.path("gate");
    let script = format!(
        "echo one; until [ -e {} ]; do sleep 0.05; done; echo two",
        gate.display()
    );
    let id = mcp.spawn(&script).await;
    let read = json!({ "id": id, "wait_seconds": 30 });
    let first = mcp.call("heeler_output", read.clone()).await;
    assert_eq!(first.data["output"], "one\n");
    let nothing = mcp.call("heeler_output", json!({ "id": id })).await;
    assert_eq!(nothing.data["output"], "");
    std::fs::write(gate, "").unwrap();
    let second = mcp.call("heeler_output", read).await;
    assert_eq!(second.data["output"], "two\n");
    // Another connection has read nothing.
    let mut other = Mcp::start(&daemon, &[]).await;
    let all = other.call("heeler_output", json!({ "id": id })).await;
    assert_eq!(all.data["output"], "one\ntwo\n");
}

/// M3: neither a cursor beyond the end nor one far ahead makes the output before it count as read.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_cursor_ahead_leaves_what_is_before_it_unread() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let id = mcp.spawn("echo one; echo two").await;
    mcp.call("heeler_wait", json!({ "ids": [id] })).await;
    let beyond = json!({ "id": id, "cursor": format!("{id}@5000") });
    let beyond = mcp.call("heeler_output", beyond).await;
    assert_eq!(beyond.data["output"], "");
    assert_eq!(beyond.data["next_cursor"], format!("{id}@8"));
    let ahead = json!({ "id": id, "cursor": format!("{id}@4") });
    let ahead = mcp.call("heeler_output", ahead).await;
    assert_eq!(ahead.data["output"], "two\n");
    let unread = mcp.call("heeler_output", json!({ "id": id })).await;
    assert_eq!(unread.data["output"], "one\ntwo\n");
    let nothing = mcp.call("heeler_output", json!({ "id": id })).await;
    assert_eq!(nothing.data["output"], "");
}

/// M3: the last lines end at the end, and what they leave out is before them.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_last_lines_that_are_too_long_lose_their_beginning() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let id = mcp
        .spawn("for n in $(seq 600); do printf '%069d\\n' $n; done")
        .await;
    mcp.call("heeler_wait", json!({ "ids": [id] })).await;
    let line = |number: u32| format!("{number:069}\n");
    for stream in [json!({}), json!({ "stream": "stdout" })] {
        let mut arguments = json!({ "id": id, "tail_lines": 500 });
        arguments
            .as_object_mut()
            .unwrap()
            .extend(stream.as_object().unwrap().clone());
        let tail = mcp.call("heeler_output", arguments).await;
        let output = tail.data["output"].as_str().unwrap();
        // As many lines as fit into 16 KiB.
        let lines: String = (367..=600).map(line).collect();
        assert_eq!(output, format!("[… 19 kB omitted here …]\n{lines}"));
        assert_eq!(
            (&tail.data["more"], &tail.data["complete"]),
            (&json!(false), &json!(true))
        );
        let cursor = tail.data["omitted_cursor"].as_str().unwrap();
        let before = json!({ "id": id, "cursor": cursor, "max_bytes": 1024 });
        let before = mcp.call("heeler_output", before).await;
        assert!(
            before.data["output"]
                .as_str()
                .unwrap()
                .starts_with(&line(101))
        );
    }
    let long = mcp.spawn("head -c 30000 /dev/zero | tr '\\0' x").await;
    mcp.call("heeler_wait", json!({ "ids": [long] })).await;
    let last = json!({ "id": long, "tail_lines": 1, "max_bytes": 1024 });
    let last = mcp.call("heeler_output", last).await;
    let expected = format!("[… 29 kB omitted here …]\n{}", "x".repeat(1024));
    assert_eq!(last.data["output"], *expected);
}

/// M3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn output_is_searched_and_cut_by_the_daemon_without_escape_sequences() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let script = r"seq 1 5000; printf '\033[31mred alert\033[0m\n'; seq 5001 9000; echo oops >&2";
    let id = mcp.spawn(script).await;
    mcp.call("heeler_wait", json!({ "ids": [id] })).await;
    let output = |value: &Value| value["output"].as_str().unwrap().to_owned();
    let found = json!({ "id": id, "grep": "alert", "context_lines": 1 });
    let found = mcp.call("heeler_output", found).await;
    assert_eq!(output(&found.data), "5000\nred alert\n5001\n");
    let tail = mcp
        .call("heeler_output", json!({ "id": id, "tail_lines": 2 }))
        .await;
    assert_eq!(output(&tail.data).lines().count(), 2);
    let errors = mcp
        .call("heeler_output", json!({ "id": id, "stream": "stderr" }))
        .await;
    assert_eq!(output(&errors.data), "oops\n");
    // None of these counts as read.
    let unread = mcp.call("heeler_output", json!({ "id": id })).await;
    assert!(output(&unread.data).starts_with("1\n2\n"));
    let inspected = mcp.call("heeler_inspect", json!({ "id": id })).await;
    assert!(inspected.text.starts_with(&id) && inspected.text.len() < 12_000);
}

/// M3: a list of many tasks comes in pages, each line begins with the id.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_list_is_bounded_and_has_a_cursor() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(
            mcp.spawn(&format!("sleep 600 # {}", "x".repeat(2000)))
                .await,
        );
    }
    let mut seen = Vec::new();
    let mut arguments = json!({ "limit": 2 });
    loop {
        let page = mcp.call("heeler_list", arguments.clone()).await;
        assert!(page.text.len() < 1500, "{}", page.text.len());
        let tasks = page.data["tasks"].as_array().unwrap().iter();
        seen.extend(tasks.map(|task| task["id"].as_str().unwrap().to_owned()));
        match page.data["next_cursor"].as_str() {
            Some(cursor) => arguments["cursor"] = cursor.into(),
            None => break,
        }
    }
    ids.sort();
    seen.sort();
    assert_eq!(seen, ids);
}

/// M3: the daemon makes room in memory by removing runs whose end was received.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn many_runs_at_once_have_their_output() {
    let daemon = Daemon::builder()
        .arg("--memory-output")
        .arg("8MiB")
        .start()
        .await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let mut runs = Vec::new();
    for number in 0..250 {
        let run = json!({ "command": format!("echo number {number}") });
        runs.push(mcp.begin_call("heeler_run", run).await);
    }
    for (number, run) in runs.into_iter().enumerate() {
        let answer = Answer::of(&mcp.answer(run).await.unwrap());
        assert_eq!(answer.data["output"], format!("number {number}\n"));
    }
}

/// M3: lines of 60 kB, and as many around each match as the daemon holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_search_with_long_lines_is_bounded() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let script = r#"long=$(head -c 60000 /dev/zero | tr '\0' x)
        for n in $(seq 20); do echo "$n $long"; done; echo found; echo "after $long""#;
    let id = mcp.spawn(script).await;
    mcp.call("heeler_wait", json!({ "ids": [id] })).await;
    for max_bytes in [1024, 16_384] {
        let found = json!({
            "id": id, "grep": "^found$", "context_lines": 20, "max_bytes": max_bytes,
        });
        let found = mcp.call("heeler_output", found).await;
        let output = found.data["output"].as_str().unwrap();
        assert!(output.len() < 2 * max_bytes, "{}", output.len());
        assert_eq!(output.lines().count(), 21, "{output}");
        assert!(output.contains("\nfound\n"), "{output}");
        assert!(output.contains("kB of this line]"), "{output}");
    }
}

/// M3: while the task runs, any line may be the context of the next match.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_search_has_no_more_while_nothing_is_written() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let id = mcp
        .spawn("echo found; seq 1 100; echo end; exec sleep 600")
        .await;
    mcp.call("heeler_wait", json!({ "ids": [id], "pattern": "^end$" }))
        .await;
    let mut search = json!({ "id": id, "grep": "found", "context_lines": 3 });
    let first = mcp.call("heeler_output", search.clone()).await;
    assert_eq!(first.data["output"], "found\n1\n2\n3\n");
    search["cursor"] = first.data["next_cursor"].clone();
    let second = mcp.call("heeler_output", search).await;
    assert_eq!(
        (&second.data["output"], &second.data["more"]),
        (&json!(""), &json!(false)),
        "{second:?}"
    );
}

/// M2, M3: for a line that matches, not for any.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_search_waits_for_a_line_that_matches() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let gate = daemon.path("gate");
    let script = format!(
        "while [ ! -e {} ]; do echo other; sleep 0.05; done; echo found; exec sleep 600",
        gate.display()
    );
    let id = mcp.spawn(&script).await;
    let arguments = json!({ "id": id, "grep": "found", "wait_seconds": 50 });
    let params = json!({
        "name": "heeler_output", "arguments": arguments, "_meta": { "progressToken": "p1" },
    });
    let request = mcp.begin("tools/call", params).await;
    mcp.notification("notifications/progress").await;
    std::fs::write(gate, "").unwrap();
    let found = Answer::of(&mcp.answer(request).await.unwrap());
    assert_eq!(found.data["output"], "found\n");
}

/// M3: the answer to a start has both ends of the output, and the cursors.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_output_of_a_failed_start_says_what_it_leaves_out() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let server = json!({ "command": "seq 1 5000; exit 1", "ready_pattern": "listening" });
    let started = mcp.call("heeler_spawn", server).await;
    let id = started.data["id"].as_str().unwrap();
    let omitted = started.data["omitted_bytes"].as_u64().unwrap();
    assert!(omitted > 10_000, "{started:?}");
    let cursor = started.data["omitted_cursor"].clone();
    started.has(&format!(
        "read them with cursor {}",
        cursor.as_str().unwrap()
    ));
    let next = started.data["next_cursor"].as_str().unwrap();
    assert_eq!(next, format!("{id}@23893"));
    let middle = json!({ "id": id, "cursor": cursor, "max_bytes": 65_536 });
    let middle = mcp.call("heeler_output", middle).await;
    let all: String = (1..=5000).map(|number| format!("{number}\n")).collect();
    assert!(all.ends_with(middle.data["output"].as_str().unwrap()));
}
