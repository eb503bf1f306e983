"""A command that is run: its output, its end, and what becomes of it when its caller leaves."""

import asyncio
from pathlib import Path

import pytest

import heeler
from harness import Daemon, alive
from heeler import (
    Chunk,
    Client,
    DetachCause,
    Exited,
    HolderGoneAction,
    Placement,
    ReleaseReason,
    SpawnNoticeType,
    TaskState,
)


async def test_a_run_gives_the_output_and_the_end(client: Client) -> None:
    """F11."""
    result = await client.run("echo out; echo err >&2; exit 4", session="s", name="n")
    assert (result.stdout, result.stderr) == (b"out\n", b"err\n")
    assert (result.outcome, result.reason) == (Exited(4), ReleaseReason.FINISHED)
    assert (result.task.session_id, result.task.name) == ("s", "n")
    assert not result.detached
    assert not result.notices


async def test_output_goes_to_whoever_wants_it_as_it_comes(client: Client) -> None:
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


async def test_a_run_that_takes_too_long_goes_on_in_the_background(client: Client) -> None:
    """F4."""
    result = await client.run("sleep 100", foreground_timeout=0.5)
    assert (result.detached, result.outcome) == (True, None)
    assert result.task.detached.cause == DetachCause.FOREGROUND_TIMEOUT
    state = await client.task(result.task).snapshot()
    assert (state.state, state.placement) == (TaskState.RUNNING, Placement.BACKGROUND)


async def test_a_leader_that_exits_before_its_children_releases_the_caller(client: Client) -> None:
    """F11."""
    result = await client.run("sleep 100 & exit 6")
    assert (result.reason, result.outcome) == (ReleaseReason.LEADER_EXITED, Exited(6))
    assert result.task.state == TaskState.RUNNING


async def test_a_script_that_goes_to_the_background_by_itself_is_not_waited_for(
    client: Client,
) -> None:
    """A1."""
    result = await client.run("sleep 100 &")
    assert (result.detached, result.task.placement) == (True, Placement.BACKGROUND)
    assert [notice.type for notice in result.notices] == [SpawnNoticeType.TRAILING_AMPERSAND]


async def test_cancelling_the_caller_cancels_the_command_and_waits_for_it(
    client: Client, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    script = f"setsid sleep 100 & echo $! > {pids}; echo $$ >> {pids}; echo up; sleep 100"
    up = asyncio.Event()
    running = asyncio.create_task(client.run(script, on_output=lambda _: up.set()))
    await asyncio.wait_for(up.wait(), 30)
    assert all(map(alive, map(int, pids.read_text().split())))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not any(map(alive, map(int, pids.read_text().split())))
    assert await states(client) == ["CANCELLED"]


async def states(client: Client) -> list[str]:
    return [TaskState.name(task.state) async for task in client.list(include_finished=True)]


async def test_a_caller_that_is_cancelled_while_it_spawns_leaves_nothing_behind(
    client: Client,
) -> None:
    running = asyncio.create_task(client.run("sleep 100"))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await states(client) in ([], ["CANCELLED"])


async def test_a_consumer_that_fails_ends_the_command(client: Client) -> None:
    def fail(_: Chunk) -> None:
        raise LookupError("no")

    with pytest.raises(LookupError, match="no"):
        await client.run("echo up; sleep 100", on_output=fail)
    assert await states(client) == ["CANCELLED"]


async def test_a_caller_can_leave_the_command_to_the_background(client: Client) -> None:
    """F5."""
    running = client.run("sleep 100", detach_on_cancel=True)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(running, 0.5)
    (task,) = [task async for task in client.list()]
    assert (task.state, task.placement) == (TaskState.RUNNING, Placement.BACKGROUND)
    # A caller that is killed is to mean the same.
    assert task.on_holder_gone == HolderGoneAction.DETACH


async def test_a_run_goes_on_across_kills_of_the_daemon(
    client: Client, daemon: Daemon, tmp_path: Path
) -> None:
    """F6, R1."""
    gate, up = tmp_path / "go", asyncio.Event()
    written: list[bytes] = []

    def take(chunk: Chunk) -> None:
        written.append(chunk.data)
        up.set()

    script = f"echo one; while [ ! -e {gate} ]; do sleep 0.01; done; echo two; exit 3"
    running = asyncio.create_task(client.run(script, on_output=take, holder_window=60))
    await asyncio.wait_for(up.wait(), 30)
    await asyncio.to_thread(daemon.restart)
    gate.touch()
    assert (await asyncio.wait_for(running, 30)).outcome == Exited(3)
    assert b"".join(written) == b"one\ntwo\n"


async def test_what_cannot_be_started_is_refused(client: Client) -> None:
    """S3."""
    with pytest.raises(heeler.WorkingDirectoryUnusable):
        await client.run("true", cwd="/nowhere")
    with pytest.raises(TypeError, match="unheard"):
        await client.run("true", unheard=1)  # type: ignore[call-arg]
