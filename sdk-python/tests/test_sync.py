"""The sync face: the same calls, for programs without an event loop."""

import inspect
import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

import heeler
import heeler.sync
from harness import DEADLINE, Daemon
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
    with pytest.raises(heeler.TaskNotFound):
        sync_client.task(task).snapshot()


def test_a_task_does_not_outlive_its_block(sync_client: Client) -> None:
    with sync_client.spawn("sleep 100") as task:
        assert task.snapshot().state == TaskState.RUNNING
    assert task.snapshot().state == TaskState.CANCELLED


def test_a_deadline_ends_the_call_and_not_the_task(sync_client: Client) -> None:
    task = sync_client.spawn("sleep 100")
    with pytest.raises(TimeoutError, match=r"no answer within 0\.05 s"):
        task.within(0.05).wait()
    with pytest.raises(heeler.StillRunning):
        task.wait(timeout=0.05)
    assert task.snapshot().state == TaskState.RUNNING


def test_a_watch_goes_on_across_kills_and_after_a_step_that_timed_out(
    daemon: Daemon, sync_client: Client
) -> None:
    """E2, R1."""
    watch = sync_client.within(0.2).watch(after=0)
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


def test_a_command_is_run_in_the_foreground(sync_client: Client) -> None:
    """F11."""
    result = sync_client.run("echo out; echo err >&2; exit 4")
    assert (result.stdout, result.stderr, result.outcome) == (b"out\n", b"err\n", Exited(4))
    threads = []
    sync_client.run("echo one", on_output=lambda _: threads.append(threading.current_thread()))
    assert threads == [threading.current_thread()]


def test_a_deadline_of_a_run_is_for_all_of_it_and_ends_the_command(sync_client: Client) -> None:
    script = "echo up; while :; do sleep 0.05; echo on; done"
    with pytest.raises(TimeoutError, match="no answer within"):
        sync_client.within(1).run(script)
    (task,) = sync_client.list(include_finished=True)
    assert task.state == TaskState.CANCELLED
    with pytest.raises(TimeoutError):
        sync_client.within(1).run("sleep 100", detach_on_cancel=True)
    (task,) = sync_client.list()
    assert task.placement == Placement.BACKGROUND


def test_a_task_is_held_and_detached(sync_client: Client) -> None:
    """F1."""
    task = sync_client.spawn("echo up; sleep 100", placement=Placement.FOREGROUND)
    with task.attach() as attachment:
        assert isinstance(next(attachment), heeler.Attached)
        chunk = next(attachment)
        assert isinstance(chunk, heeler.Chunk)
        assert (chunk.data, attachment.offset) == (b"up\n", 3)
        assert task.detach().outcome == DetachOutcome.DETACHED
        (released,) = attachment
    assert released == attachment.released
    assert task.wait(until=heeler.WaitCondition.RELEASED).placement == Placement.BACKGROUND
    assert sync_client.detach(task).results[0].outcome == DetachOutcome.ALREADY_BACKGROUND
    assert task.notices == ()


def test_an_interrupt_ends_a_command_that_is_run(daemon: Daemon, sync_client: Client) -> None:
    told = interrupted(f"""
        import heeler.sync
        with heeler.sync.connect({daemon.address!r}) as client:
            client.run("echo up; sleep 100", on_output=lambda _: print("up", flush=True))
    """)
    assert told == "up"
    (task,) = sync_client.list(include_finished=True)
    assert task.state == TaskState.CANCELLED


def test_threads_share_a_client(sync_client: Client) -> None:
    codes: list[heeler.Outcome | None] = []

    def work(code: int) -> None:
        codes.append(heeler.outcome(sync_client.spawn(f"exit {code}").wait()))

    threads = [threading.Thread(target=work, args=[code]) for code in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert {code.code for code in codes if isinstance(code, Exited)} == set(range(8))


def test_options_that_are_not_known_are_refused(sync_client: Client) -> None:
    for call in (sync_client.spawn, sync_client.run):
        with pytest.raises(TypeError, match="unheard"):
            call("true", unheard=1)  # type: ignore[call-arg]


def test_errors_are_the_same(tmp_path: os.PathLike[str]) -> None:
    with pytest.raises(heeler.NotRunning, match="heeler serve"):
        heeler.sync.connect(f"unix:{os.fspath(tmp_path)}/s.sock")


def test_every_call_of_the_client_is_there_with_its_arguments() -> None:
    own = {"stub", "read_output_request"}
    for face, inner in ((Client, heeler.Client), (heeler.sync.Task, heeler.Task)):
        names = {name for name in vars(inner) if not name.startswith("_")} - own
        assert names <= set(dir(face))
        for name in names:
            if inspect.isfunction(method := getattr(inner, name)):
                parameters = inspect.signature(getattr(face, name)).parameters
                assert set(parameters) == set(inspect.signature(method).parameters), name


def test_an_interrupt_ends_the_call_and_not_the_task(daemon: Daemon, sync_client: Client) -> None:
    task = sync_client.spawn("sleep 100")
    told = interrupted(f"""
        import heeler.sync
        with heeler.sync.connect({daemon.address!r}) as client:
            task = client.task({task.id!r})
            print(task.snapshot().id, flush=True)
            task.wait()
    """)
    assert told == task.id
    assert task.snapshot().state == TaskState.RUNNING


def interrupted(program: str) -> str:
    """Runs a program, and presses Ctrl-C when it has printed a line; gives the line."""
    # Whoever runs the tests in the background may have them ignore it.
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    with subprocess.Popen(
        [sys.executable, "-c", heard + textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        told = running.stdout.readline().strip()
        running.send_signal(signal.SIGINT)
        try:
            _, errors = running.communicate(timeout=DEADLINE)
        finally:
            running.kill()
    assert "KeyboardInterrupt" in errors
    return told
