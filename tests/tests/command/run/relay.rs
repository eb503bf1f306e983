//! A run with input whose bytes pass between the caller and the task without the daemon.

use std::{
    fs,
    io::{Read, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use heeler_tests::{
    Daemon, Process, client::input::status, eventually, numbered, outcome::exit_code, v1::*, within,
};
use nix::sys::signal::Signal;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, ChildStdin, ChildStdout},
    task::spawn_blocking,
};

use super::{ended, reads, the_task};

/// Starts `heeler run ARGS…` with all three streams in pipes.
fn piped(daemon: &Daemon, args: &[&str]) -> (Child, ChildStdin, ChildStdout) {
    let mut command = daemon.cli(["run"].iter().chain(args));
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut run = command.spawn().unwrap();
    let (stdin, stdout) = (run.stdin.take().unwrap(), run.stdout.take().unwrap());
    (run, stdin, stdout)
}

/// Writes a line, and reads it from a `cat`.
async fn echoes(stdin: &mut ChildStdin, stdout: &mut ChildStdout, line: &str) {
    stdin.write_all(line.as_bytes()).await.unwrap();
    reads(stdout, line).await;
}

/// I4, I8
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn messages_pass_while_the_daemon_is_stopped() {
    let daemon = Daemon::start().await;
    let (run, mut stdin, mut stdout) = piped(&daemon, &["-i", "-c", "cat; echo bye >&2; exit 3"]);
    echoes(&mut stdin, &mut stdout, "first\n").await;
    let stopped = Process::now(daemon.pid()).unwrap();
    stopped.signal(Signal::SIGSTOP);
    for number in 0..50 {
        echoes(&mut stdin, &mut stdout, &format!("{number}\n")).await;
    }
    stopped.signal(Signal::SIGCONT);
    drop(stdin);
    let end = ended(run).await;
    assert_eq!((end.code, &*end.stderr), (Some(3), "bye\n"));
    let api = daemon.api().await;
    let task = api.all().await.remove(0);
    let kept = api.output(&task.id).await;
    let numbers: String = (0..50).map(|number| format!("{number}\n")).collect();
    assert_eq!(
        String::from_utf8(kept).unwrap(),
        format!("first\n{numbers}bye\n")
    );
}

/// I4: Node gives its children sockets.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn messages_pass_through_sockets_while_the_daemon_is_stopped() {
    let daemon = Daemon::start().await;
    let (mut input, stdin) = UnixStream::pair().unwrap();
    let (mut output, stdout) = UnixStream::pair().unwrap();
    let mut command = daemon.cli(["run", "-i", "--", "cat"]);
    command
        .stdin(OwnedFd::from(stdin))
        .stdout(OwnedFd::from(stdout));
    let mut run = command.spawn().unwrap();
    drop(command);
    let stopped = Process::now(daemon.pid()).unwrap();
    let talk = spawn_blocking(move || {
        let mut echo = |text: &[u8]| {
            input.write_all(text).unwrap();
            let mut read = vec![0; text.len()];
            output.read_exact(&mut read).unwrap();
            assert_eq!(read, text);
        };
        echo(b"first");
        stopped.signal(Signal::SIGSTOP);
        echo(b"second");
        stopped.signal(Signal::SIGCONT);
        input.shutdown(std::net::Shutdown::Write).unwrap();
        output.read_to_end(&mut Vec::new()).unwrap()
    });
    assert_eq!(within("the end", talk).await.unwrap(), 0);
    let exit = within("the exit", run.wait()).await.unwrap();
    assert_eq!(exit.code(), Some(0));
}

/// I4, O10: beyond a full pipe the output takes the usual way, and nothing is lost or repeated.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_caller_that_pauses_delays_no_task_and_gets_every_byte() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = "read -r line; seq 1 500000; read -r line; echo \"$line\"";
    let (run, mut stdin, mut stdout) = piped(&daemon, &["-i", "-c", script]);
    let task = the_task(&api).await;
    stdin.write_all(b"begin\nend\n").await.unwrap();
    drop(stdin);
    assert_eq!(exit_code(&api.ended(&task.id).await), 0);
    let mut read = String::new();
    within("the output", stdout.read_to_string(&mut read))
        .await
        .unwrap();
    let numbers: String = (1..=500_000).map(|number| format!("{number}\n")).collect();
    assert!(read == numbers + "end\n", "{} bytes", read.len());
    assert_eq!(ended(run).await.code, Some(0));
}

/// O10: a caller that reads all the time, and slowly.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_caller_that_reads_slowly_delays_no_task_and_gets_every_byte() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = "read -r line; seq 1 500000";
    let (run, mut stdin, mut stdout) = piped(&daemon, &["-i", "-c", script]);
    let id = the_task(&api).await.id;
    stdin.write_all(b"begin\n").await.unwrap();
    drop(stdin);
    let numbers: String = (1..=500_000).map(|number| format!("{number}\n")).collect();
    let (mut read, ended_task) = (Vec::new(), api.ended(&id));
    tokio::pin!(ended_task);
    loop {
        let mut page = [0; 4096];
        let len = within("output", stdout.read(&mut page)).await.unwrap();
        read.extend_from_slice(&page[..len]);
        tokio::select! {
            biased;
            _ = &mut ended_task => break,
            () = tokio::time::sleep(heeler_tests::waiting::STEP) => {}
        }
    }
    assert!(read.len() < numbers.len() / 2, "{} bytes", read.len());
    within("the output", stdout.read_to_end(&mut read))
        .await
        .unwrap();
    assert!(read == numbers.as_bytes(), "{} bytes", read.len());
    assert_eq!(ended(run).await.code, Some(0));
}

/// I3, I4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_byte_passes_both_ways_through_a_task_that_pauses() {
    let daemon = Daemon::start().await;
    let script = format!(
        "until [ -e {} ]; do sleep 0.01; done; cat",
        daemon.file("go")
    );
    let (run, mut stdin, mut stdout) = piped(&daemon, &["-i", "-c", &script]);
    let text: String = (1..=500_000).map(|number| format!("{number}\n")).collect();
    let sent = text.clone();
    let taken = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&taken);
    let writing = tokio::spawn(async move {
        for piece in sent.as_bytes().chunks(1000) {
            stdin.write_all(piece).await.unwrap();
            counter.fetch_add(piece.len(), Ordering::Relaxed);
        }
    });
    // More than the task's pipe: it is full.
    eventually("a full pipe", || taken.load(Ordering::Relaxed) > 128 << 10).await;
    fs::write(daemon.path("go"), "").unwrap();
    let mut read = String::new();
    within("the output", stdout.read_to_string(&mut read))
        .await
        .unwrap();
    writing.await.unwrap();
    assert!(read == text, "{} bytes", read.len());
    assert_eq!(ended(run).await.code, Some(0));
    let api = daemon.api().await;
    let task = api.all().await.remove(0);
    assert!(api.output(&task.id).await == text.as_bytes());
}

/// I4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn output_before_the_first_input_comes_first() {
    let daemon = Daemon::start().await;
    let script = "seq 1 30000; echo started >&2; cat";
    let (run, mut stdin, mut stdout) = piped(&daemon, &["-i", "-c", script]);
    let numbers: String = (1..=30_000).map(|number| format!("{number}\n")).collect();
    reads(&mut stdout, &numbers).await;
    echoes(&mut stdin, &mut stdout, "last\n").await;
    drop(stdin);
    let end = ended(run).await;
    assert_eq!((end.code, &*end.stderr), (Some(0), "started\n"));
}

/// I6: the first writer is told, and reads on.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn another_writer_takes_over_only_by_saying_so() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let (mut run, mut stdin, mut stdout) = piped(&daemon, &["-i", "--", "cat"]);
    echoes(&mut stdin, &mut stdout, "one\n").await;
    let id = the_task(&api).await.id;
    let asked = api.write_input(status(&id)).await.unwrap();
    assert_eq!(asked.offset, 4);
    let refused = daemon.heeler(["send", &id, "two", "--enter"]).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("INPUT_HELD"), "{refused:?}");
    let other = |data: &'static str| WriteInputRequest {
        task_id: id.clone(),
        writer_id: "other".into(),
        data: data.into(),
        take_over: true,
        ..WriteInputRequest::default()
    };
    api.raw().write_input(other("two\n")).await.unwrap();
    reads(&mut stdout, "two\n").await;
    stdin.write_all(b"three\n").await.unwrap();
    drop(stdin);
    let mut note = [0; 256];
    let stderr = run.stderr.as_mut().unwrap();
    let read = within("a note", stderr.read(&mut note)).await.unwrap();
    let note = String::from_utf8_lossy(&note[..read]);
    assert!(note.contains("the input is not passed on"), "{note}");
    let end = WriteInputRequest {
        close: true,
        ..other("")
    };
    api.raw().write_input(end).await.unwrap();
    let mut rest = String::new();
    within("the end", stdout.read_to_string(&mut rest))
        .await
        .unwrap();
    assert_eq!((rest.as_str(), ended(run).await.code), ("", Some(0)));
}

/// I6, F1: a task that continues has its input for others.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_that_is_detached_takes_the_input_of_others() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let (run, mut stdin, mut stdout) = piped(&daemon, &["-i", "--", "cat"]);
    echoes(&mut stdin, &mut stdout, "one\n").await;
    let id = the_task(&api).await.id;
    daemon.heeler(["detach", &id]).await.ok();
    reads(&mut stdout, &format!("{id}\n")).await;
    assert_eq!(ended(run).await.code, Some(0));
    daemon.heeler(["send", &id, "two", "--eof"]).await.ok();
    assert_eq!(exit_code(&api.ended(&id).await), 0);
    assert_eq!(api.output(&id).await, b"one\ntwo");
}

/// I2, I4: the shim goes on without a daemon, and the next one knows what the task was given.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn messages_pass_while_no_daemon_runs() {
    let mut daemon = Daemon::start().await;
    let (run, mut stdin, mut stdout) = piped(&daemon, &["-i", "--", "cat"]);
    echoes(&mut stdin, &mut stdout, "first\n").await;
    daemon.kill9();
    let sent = String::from_utf8(numbered(0..500_000)).unwrap();
    let (more, mut read) = (sent.clone(), vec![0; sent.len()]);
    let (written, got) = tokio::join!(
        stdin.write_all(more.as_bytes()),
        within("the bytes", stdout.read_exact(&mut read))
    );
    written.unwrap();
    got.unwrap();
    assert!(read == sent.as_bytes());
    daemon.restart().await;
    let api = daemon.api().await;
    let id = the_task(&api).await.id;
    let standing = api.write_input(status(&id)).await.unwrap();
    assert_eq!(standing.offset, 6 + sent.len() as u64);
    echoes(&mut stdin, &mut stdout, "last\n").await;
    drop(stdin);
    assert_eq!(ended(run).await.code, Some(0));
}
