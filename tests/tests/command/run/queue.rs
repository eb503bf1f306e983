//! A run that waits in a queue.

use heeler_tests::{Daemon, eventually};

/// X2, U3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn run_says_what_it_waits_for_and_the_queue_counts_for_no_deadline() {
    let daemon = Daemon::start().await;
    let wait = format!("while [ ! -e {} ]; do sleep 0.02; done", daemon.file("go"));
    let holder = daemon
        .spawned(&["--queue", "build", "--name", "first", "-c", &wait])
        .await;
    let second = daemon.spawned(&["--queue", "build", "true"]).await;
    let limits = [
        "--foreground-timeout",
        "1s",
        "--on-foreground-timeout",
        "cancel",
        "--timeout",
        "1s",
    ];
    let args = ["run", "--queue", "build"]
        .iter()
        .chain(&limits)
        .chain(&["echo", "done"]);
    let stderr = daemon.path("stderr");
    let mut command = daemon.cli(args);
    command.stdout(std::process::Stdio::piped());
    command.stderr(std::fs::File::create(&stderr).unwrap());
    let run = command.spawn().unwrap();
    let begun = std::time::Instant::now();
    let noted = || std::fs::read_to_string(&stderr).unwrap();
    eventually("the note", || {
        let text = noted();
        text.contains("queue build: 1 before this one") && text.contains(&holder)
    })
    .await;
    // Longer than every deadline of the task.
    eventually("time in the queue", || begun.elapsed().as_millis() > 1500).await;
    std::fs::write(daemon.path("go"), "").unwrap();
    let output = heeler_tests::within("the run ends", run.wait_with_output())
        .await
        .unwrap();
    assert_eq!(
        (output.status.code(), &*output.stdout),
        (Some(0), &b"done\n"[..]),
        "{}",
        noted()
    );
    daemon.api().await.ended(&second).await;
}
