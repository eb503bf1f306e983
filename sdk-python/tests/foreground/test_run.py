"""Running a command in the foreground: its output and its end."""

import asyncio
from pathlib import Path

import pytest

import heeler
from harness.daemon import Daemon
from heeler import (
    AttachEndReason,
    Chunk,
    Client,
    DetachCause,
    Exited,
    Placement,
    SpawnNoticeType,
    TaskState,
)


async def test_run_returns_the_output_and_the_outcome(client: Client) -> None:
    """F11."""
    result = await client.run("echo out; echo err >&2; exit 4", session="s", name="n")
    assert (result.stdout, result.stderr) == (b"out\n", b"err\n")
    assert (result.outcome, result.reason) == (Exited(4), AttachEndReason.FINISHED)
    assert (result.task.spec.session_id, result.task.spec.name) == ("s", "n")
    assert not result.detached
    assert not result.notices


async def test_on_output_gets_the_output_as_it_arrives(client: Client) -> None:
    direct: list[Chunk] = []
    result = await client.run(["printf", "one"], on_output=direct.append)
    assert b"".join(chunk.data for chunk in direct) == b"one"
    assert result.stdout == b""
    awaited: list[bytes] = []

    async def slow(chunk: Chunk) -> None:
        await asyncio.sleep(0)
        awaited.append(chunk.data)

    await client.run(["printf", "two"], on_output=slow)
    assert b"".join(awaited) == b"two"


async def test_the_foreground_timeout_moves_the_command_to_the_background(client: Client) -> None:
    """F4."""
    result = await client.run("sleep 100", foreground_timeout=0.5)
    assert (result.detached, result.outcome) == (True, None)
    assert result.task.detachment.cause == DetachCause.FOREGROUND_TIMEOUT
    state = await client.task(result.task).get()
    assert (state.state, state.placement) == (TaskState.RUNNING, Placement.BACKGROUND)


async def test_run_returns_when_the_leader_exits_before_its_children(client: Client) -> None:
    """F11."""
    result = await client.run("sleep 100 & exit 6")
    assert (result.reason, result.outcome) == (AttachEndReason.LEADER_EXITED, Exited(6))
    assert result.task.state == TaskState.RUNNING


async def test_a_script_with_a_trailing_ampersand_is_not_waited_for(client: Client) -> None:
    """A1."""
    result = await client.run("sleep 100 &")
    assert (result.detached, result.task.placement) == (True, Placement.BACKGROUND)
    assert [notice.type for notice in result.notices] == [SpawnNoticeType.TRAILING_AMPERSAND]


async def test_run_resumes_after_a_kill_of_the_daemon(
    client: Client, daemon: Daemon, tmp_path: Path
) -> None:
    """F6, R1."""
    gate, up = tmp_path / "go", asyncio.Event()
    written: list[bytes] = []

    def take(chunk: Chunk) -> None:
        written.append(chunk.data)
        up.set()

    script = f"echo one; while [ ! -e {gate} ]; do sleep 0.01; done; echo two; exit 3"
    running = asyncio.create_task(client.run(script, on_output=take, reattach_window=60))
    await asyncio.wait_for(up.wait(), 30)
    await asyncio.to_thread(daemon.restart)
    gate.touch()
    assert (await asyncio.wait_for(running, 30)).outcome == Exited(3)
    assert b"".join(written) == b"one\ntwo\n"


async def test_a_command_that_cannot_start_is_refused(client: Client) -> None:
    """S3."""
    with pytest.raises(heeler.WorkingDirectoryUnusableError):
        await client.run("true", cwd="/nowhere")
    with pytest.raises(TypeError, match="unknown"):
        await client.run("true", unknown=1)  # type: ignore[call-arg]
