"""The blocking client: the same calls for programs without an event loop."""

import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

import heeler
import heeler.sync
from harness.daemon import DEADLINE, Daemon
from heeler import (
    DetachOutcome,
    Exited,
    Filter,
    Placement,
    TaskEvent,
    TaskEventType,
    TaskState,
)
from heeler.sync import Client


def test_a_task_is_spawned_waited_for_and_read(sync_client: Client) -> None:
    task = sync_client.spawn("echo one; echo two; exit 3", session="s")
    assert heeler.outcome(task.wait()) == Exited(3)
    assert [line.text for line in task.lines()] == ["one", "two"]
    assert b"".join(chunk.data for chunk in task.output()) == b"one\ntwo\n"
    assert [event.type for event in task.events()][-1] == TaskEventType.ENDED
    listed = sync_client.list(Filter(session="s"), include_finished=True)
    assert [found.id for found in listed] == [task.id]
    assert task.inspect().task.id == sync_client.inspect(task).task.id
    task.remove()
    with pytest.raises(heeler.TaskNotFoundError):
        sync_client.task(task).get()


def test_a_with_block_cancels_its_task(sync_client: Client) -> None:
    with sync_client.spawn("sleep 100") as task:
        assert task.get().state == TaskState.RUNNING
    assert task.get().state == TaskState.CANCELLED


def test_a_deadline_does_not_end_the_task(sync_client: Client) -> None:
    task = sync_client.spawn("sleep 100")
    with pytest.raises(TimeoutError, match=r"no answer within 0\.05 s"):
        task.within(0.05).wait()
    with pytest.raises(heeler.TaskStillRunningError):
        task.wait(timeout=0.05)
    assert task.get().state == TaskState.RUNNING


def test_watch_resumes_after_kills_and_timeouts(daemon: Daemon, sync_client: Client) -> None:
    """E2, R1."""
    watch = sync_client.within(0.2).watch_events(after=0)
    revisions: list[int] = []
    for restart in range(3):
        sync_client.spawn("true").wait()
        if restart:
            daemon.restart()
        last = sync_client.list_page().revision
        while len(revisions) < last:
            try:
                item = next(watch)
            except TimeoutError:
                continue
            if isinstance(item, TaskEvent):
                revisions.append(item.revision)
    assert revisions == list(range(1, 10))
    assert watch.bookmark is not None
    watch.close()
    assert list(watch) == []


def test_run_returns_output_and_outcome(sync_client: Client) -> None:
    """F11."""
    result = sync_client.run("echo out; echo err >&2; exit 4")
    assert (result.stdout, result.stderr, result.outcome) == (b"out\n", b"err\n", Exited(4))
    threads = []
    sync_client.run("echo one", on_output=lambda _: threads.append(threading.current_thread()))
    assert threads == [threading.current_thread()]


def test_the_deadline_of_a_run_cancels_the_command(sync_client: Client) -> None:
    script = "echo up; while :; do sleep 0.05; echo on; done"
    with pytest.raises(TimeoutError, match="no answer within"):
        sync_client.within(1).run(script)
    (task,) = cancelled(sync_client)
    assert task.state == TaskState.CANCELLED
    with pytest.raises(TimeoutError):
        sync_client.within(1).run("sleep 100", detach_on_cancel=True)
    (task,) = sync_client.list()
    assert task.placement == Placement.BACKGROUND


def test_a_task_is_attached_to_and_detached(sync_client: Client) -> None:
    """F1."""
    task = sync_client.spawn("echo up; sleep 100", foreground=True)
    with task.attach() as attachment:
        assert isinstance(next(attachment), heeler.Attached)
        chunk = next(attachment)
        assert isinstance(chunk, heeler.Chunk)
        assert (chunk.data, attachment.offset) == (b"up\n", 3)
        assert task.detach().outcome == DetachOutcome.DETACHED
        (ended,) = attachment
    assert ended == attachment.ended
    assert task.wait(until=heeler.WaitCondition.OUT_OF_FOREGROUND).placement == Placement.BACKGROUND
    assert sync_client.detach(task)[0].outcome == DetachOutcome.ALREADY_BACKGROUND
    assert task.notices == ()


def test_the_message_of_an_exception_is_the_reason(sync_client: Client) -> None:
    """F13."""

    def fail(_: heeler.Chunk) -> None:
        raise LookupError("no room")

    with pytest.raises(LookupError):
        sync_client.run("echo up; sleep 100", on_output=fail)
    (task,) = cancelled(sync_client)
    assert (task.state, task.stop.reason) == (TaskState.CANCELLED, "no room")


def test_an_interrupt_cancels_the_command(daemon: Daemon, sync_client: Client) -> None:
    """F13."""
    line = interrupted(f"""
        import heeler.sync
        with heeler.sync.connect({daemon.address!r}) as client:
            client.run(
                "echo up; sleep 100",
                on_output=lambda _: print("up", flush=True),
                cancel_reason="interrupted",
            )
    """)
    assert line == "up"
    (task,) = cancelled(sync_client)
    assert (task.state, task.stop.reason) == (TaskState.CANCELLED, "interrupted")


def cancelled(client: Client) -> list[heeler.BackgroundTask]:
    return list(client.list(include_finished=True, include_finished_foreground=True))


def test_closing_a_watch_ends_the_loop_of_another_thread(sync_client: Client) -> None:
    watch = sync_client.watch_events(after=0)
    assert isinstance(next(watch), heeler.Bookmark)
    items: list[object] = []
    reader = threading.Thread(target=lambda: items.extend(watch))
    reader.start()
    watch.close()
    reader.join(DEADLINE)
    assert (items, reader.is_alive()) == ([], False)


def test_threads_can_share_a_client(sync_client: Client) -> None:
    codes: list[heeler.Outcome | None] = []

    def work(code: int) -> None:
        codes.append(heeler.outcome(sync_client.spawn(f"exit {code}").wait()))

    threads = [threading.Thread(target=work, args=[code]) for code in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert {code.code for code in codes if isinstance(code, Exited)} == set(range(8))


def test_unknown_options_are_refused(sync_client: Client) -> None:
    for call in (sync_client.spawn, sync_client.run):
        with pytest.raises(TypeError, match="unknown"):
            call("true", unknown=1)  # type: ignore[call-arg]


def test_connect_raises_the_same_errors(tmp_path: os.PathLike[str]) -> None:
    with pytest.raises(heeler.DaemonNotRunningError, match="heeler serve"):
        heeler.sync.connect(f"unix:{os.fspath(tmp_path)}/s.sock")


def test_an_interrupt_of_wait_does_not_end_the_task(daemon: Daemon, sync_client: Client) -> None:
    task = sync_client.spawn("sleep 100")
    line = interrupted(f"""
        import heeler.sync
        with heeler.sync.connect({daemon.address!r}) as client:
            task = client.task({task.id!r})
            print(task.get().id, flush=True)
            task.wait()
    """)
    assert line == task.id
    assert task.get().state == TaskState.RUNNING


def interrupted(program: str) -> str:
    """Runs a program, interrupts it after its first line, and returns that line."""
    # The tests may run in the background, where SIGINT is ignored.
    restore = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    with subprocess.Popen(
        [sys.executable, "-c", restore + textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        line = running.stdout.readline().strip()
        running.send_signal(signal.SIGINT)
        try:
            _, errors = running.communicate(timeout=DEADLINE)
        finally:
            running.kill()
    assert "KeyboardInterrupt" in errors
    return line
