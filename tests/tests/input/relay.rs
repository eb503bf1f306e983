//! Relays: who may begin one, and who ends one.

use std::{
    io::{PipeReader, PipeWriter, Read as _, Write as _, pipe},
    os::fd::AsFd as _,
};

use heeler_tests::{
    Api, Daemon, RelayClient, SpawnRequestExt as _, argv, client::input::status, millis, shell,
    v1::*, within,
};
use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::{output_with, refused::expect};

/// A take-over by this writer, which writes this.
fn take_over(id: &str, writer: &str, data: &'static str) -> WriteInputRequest {
    WriteInputRequest {
        writer_id: writer.into(),
        data: data.into(),
        take_over: true,
        ..status(id)
    }
}

/// The streams that a client hands over, and its own ends of them.
struct Streams {
    stdin: PipeReader,
    stdout: PipeWriter,
    stderr: PipeWriter,
    to_stdin: PipeWriter,
    from_stdout: PipeReader,
    _from_stderr: PipeReader,
}

impl Streams {
    fn new() -> Self {
        let (stdin, to_stdin) = pipe().unwrap();
        let (from_stdout, stdout) = pipe().unwrap();
        let (from_stderr, stderr) = pipe().unwrap();
        Self {
            stdin,
            stdout,
            stderr,
            to_stdin,
            from_stdout,
            _from_stderr: from_stderr,
        }
    }

    fn hand_over(&self, client: &RelayClient, writer: &str) {
        let streams = [self.stdin.as_fd(), self.stdout.as_fd(), self.stderr.as_fd()];
        client.hand_over(writer, streams);
    }

    /// Begins a relay as this writer.
    fn relay(&self, task: &BackgroundTask, writer: &str) -> RelayClient {
        let mut client = RelayClient::connect(&task.uid);
        self.hand_over(&client, writer);
        assert_eq!(client.offset(), Some(0));
        client.begin();
        client
    }

    /// Writes a line to the task, a `cat`, and reads it.
    fn echoes(&mut self, line: &str) {
        self.to_stdin.write_all(line.as_bytes()).unwrap();
        let mut read = vec![0; line.len()];
        self.from_stdout.read_exact(&mut read).unwrap();
        assert_eq!(read, line.as_bytes());
    }
}

async fn cat(api: &Api) -> BackgroundTask {
    api.start(argv(["cat"]).with_input()).await
}

/// I6: a client that connects and says nothing, and one that has lost the input meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_writer_that_lost_the_input_begins_no_relay_and_delays_no_take_over() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = cat(&api).await;
    let id = &task.id;
    api.write_input(take_over(id, "one", "")).await.unwrap();
    let mut late = RelayClient::connect(&task.uid);
    let streams = Streams::new();
    (&streams.to_stdin).write_all(b"late\n").unwrap();
    let taken = api.write_input(take_over(id, "two", "two\n")).await;
    assert_eq!(taken.unwrap().offset, 4);
    streams.hand_over(&late, "one");
    assert_eq!(late.offset(), None);
    let more = api.write_input(take_over(id, "two", "more\n")).await;
    assert_eq!(more.unwrap().offset, 9);
    assert_eq!(output_with(&api, id, "more\n").await, "two\nmore\n");
}

/// I6, K2: a relay is for the client that knows the writer's id, and for no client where no writer has one.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_client_without_the_writers_id_begins_no_relay() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = cat(&api).await;
    let mut streams = Streams::new();
    let refuses = |streams: &Streams, writer: &str| {
        let mut client = RelayClient::connect(&task.uid);
        streams.hand_over(&client, writer);
        assert_eq!(client.offset(), None, "{writer:?}");
    };
    refuses(&streams, "");
    api.write_input(take_over(&task.id, "writer", ""))
        .await
        .unwrap();
    for other in ["", "write", "writer2", "other"] {
        refuses(&streams, other);
    }
    let _relay = streams.relay(&task, "writer");
    streams.echoes("hello\n");
}

/// I2, I6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_take_over_ends_a_relay_and_writes_behind_its_bytes() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = cat(&api).await;
    let id = &task.id;
    api.write_input(take_over(id, "one", "")).await.unwrap();
    let mut streams = Streams::new();
    let mut relay = streams.relay(&task, "one");
    streams.echoes("relayed\n");
    let standing = api.write_input(status(id)).await.unwrap();
    assert_eq!((standing.offset, &*standing.writer_id), (8, "one"));
    streams.echoes("again\n");
    let standing = api.write_input(status(id)).await.unwrap();
    assert_eq!(standing.offset, 14);
    let quit = WriteInputRequest {
        offset: Some(14),
        ..take_over(id, "two", "quit\n")
    };
    let answer = api.write_input(quit).await.unwrap();
    assert_eq!((answer.offset, answer.taken_bytes), (19, 5));
    assert_eq!(relay.offset(), Some(14));
    let shown = output_with(&api, id, "quit\n").await;
    assert_eq!(shown, "relayed\nagain\nquit\n");
}

/// I2, I6: the next server learns of the relay by asking.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_take_over_is_the_first_call_to_a_server_that_finds_a_relay() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = cat(&api).await;
    let id = &task.id;
    api.write_input(take_over(id, "one", "")).await.unwrap();
    let mut streams = Streams::new();
    let mut relay = streams.relay(&task, "one");
    streams.echoes("relayed\n");
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    let taken = within(
        "the take-over",
        api.write_input(take_over(id, "two", "two\n")),
    );
    assert_eq!(taken.await.unwrap().offset, 12);
    assert_eq!(relay.offset(), Some(8));
    assert_eq!(output_with(&api, id, "two\n").await, "relayed\ntwo\n");
}

/// I6: also if a report of the relay's end is the first thing that it learns of the input.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_next_server_knows_the_writer_of_a_relay_that_has_ended() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = cat(&api).await;
    api.write_input(take_over(&task.id, "one", ""))
        .await
        .unwrap();
    let mut streams = Streams::new();
    let mut relay = streams.relay(&task, "one");
    streams.echoes("relayed\n");
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    relay.leave();
    assert_eq!(relay.offset(), Some(8));
    let refused = api.write(&task.id, 8, "other").await;
    expect(refused, tonic::Code::FailedPrecondition, "INPUT_HELD");
}

/// O10: a client that makes its pipe block after all.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_pipe_that_its_client_makes_blocking_does_not_stop_a_task() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = "read -r line; seq 1 500000";
    let task = api.start(shell(script).with_input()).await;
    api.write_input(take_over(&task.id, "one", ""))
        .await
        .unwrap();
    let mut streams = Streams::new();
    let set = |flags| fcntl(&streams.stdout, FcntlArg::F_SETFL(flags)).unwrap();
    set(OFlag::O_NONBLOCK);
    let mut relay = streams.relay(&task, "one");
    set(OFlag::empty());
    streams.to_stdin.write_all(b"begin\n").unwrap();
    let ended = api.ended(&task.id).await;
    assert_eq!(ended.state(), TaskState::Completed);
    let end = relay.offset().unwrap();
    assert!(end < ended.output_bytes, "{end}");
    assert!(fcntl(&streams.stdout, FcntlArg::F_GETFL).unwrap() & OFlag::O_NONBLOCK.bits() == 0);
}

/// I1: NEEDS_INPUT ends with relayed bytes, also without output.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn relayed_input_is_input_that_a_task_waited_for() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let silent = shell("exec cat > /dev/null").with_input_after(millis(50));
    let task = api.start(silent).await;
    api.write_input(take_over(&task.id, "one", ""))
        .await
        .unwrap();
    let streams = Streams::new();
    let _relay = streams.relay(&task, "one");
    let mut watch = api.watch_after(task.revision).await;
    let event = watch.event().await;
    assert_eq!(event.r#type(), TaskEventType::NeedsInput, "{event:?}");
    (&streams.to_stdin).write_all(b"here\n").unwrap();
    let event = within("the next event", watch.event()).await;
    assert_eq!(event.r#type(), TaskEventType::Active, "{event:?}");
}
