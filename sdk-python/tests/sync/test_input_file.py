"""The input of a task as a file."""

import io
import shutil

import pytest

import heeler
from harness.daemon import DEADLINE, Daemon
from heeler.sync import Client


def test_a_file_is_copied_to_a_task(sync_client: Client) -> None:
    """I1."""
    data = bytes(range(256)) * 5000
    task = sync_client.spawn("cat", input=True)
    with task.input() as stdin:
        shutil.copyfileobj(io.BytesIO(data), stdin)
    assert stdin.closed
    assert heeler.outcome(task.within(DEADLINE).wait()) == heeler.Exited(0)
    assert b"".join(chunk.data for chunk in task.output()) == data
    with pytest.raises(ValueError, match="closed"):
        stdin.writelines([b"x"])


def test_lines_are_written_and_answered_across_a_kill(daemon: Daemon, sync_client: Client) -> None:
    """I2, R1."""
    task = sync_client.spawn('while read line; do echo "<$line>"; done', input=True)
    lines = task.within(DEADLINE).lines()
    with io.TextIOWrapper(io.BufferedWriter(task.input()), write_through=True) as stdin:
        for word in ("one", "two", "three"):
            print(word, file=stdin, flush=True)
            assert next(lines).text == f"<{word}>"
            daemon.restart()
    assert heeler.outcome(task.within(DEADLINE).wait()) == heeler.Exited(0)


def test_a_flush_raises_the_error_of_a_broken_writer(sync_client: Client) -> None:
    """I7."""
    task = sync_client.spawn("exec <&-; echo deaf; exec sleep 1000", input=True)
    assert next(task.lines()).text == "deaf"
    stdin = task.input()
    stdin.write(b"x" * 100_000)
    for _ in range(2):
        with pytest.raises(BrokenPipeError):
            stdin.flush()


def test_a_task_that_does_not_read_stops_its_writer(sync_client: Client) -> None:
    """I3, I7."""
    task = sync_client.spawn("exec sleep 1000", input=True)
    stdin = task.within(0.3).input()
    with pytest.raises(TimeoutError):
        stdin.write(b"x" * 2_000_000)
    task.cancel(force=True)
    with pytest.raises(BrokenPipeError):
        stdin.write(b"x")
    del stdin
    other = sync_client.spawn("cat", input=True)
    other.input().write(b"left open\n")
    assert next(other.lines()).text == "left open"
    assert other.get().state == heeler.TaskState.RUNNING
