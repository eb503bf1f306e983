"""The foreground: a task that holds its caller, and what releases it."""

import asyncio
import contextlib
from pathlib import Path

import pytest

import heeler
from harness import Daemon, alive
from heeler import (
    Attached,
    Chunk,
    Client,
    DetachCause,
    DetachOutcome,
    EndReason,
    HolderGoneAction,
    OutputStream,
    Placement,
    Released,
    ReleaseReason,
    TaskState,
    WaitCondition,
)

WINDOW = 60
"""A holder's window that a slow machine keeps."""


async def held(client: Client, script: str, window: float = WINDOW) -> heeler.Task:
    return await client.spawn(script, placement=Placement.FOREGROUND, holder_window=window)


class Gate:
    """A file that a task waits for."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.wait = f"while [ ! -e {file} ]; do sleep 0.01; done"

    def open(self) -> None:
        """Lets it go on."""
        self._file.touch()


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    """A gate of the test's own."""
    return Gate(tmp_path / "go")


async def test_a_holder_is_told_what_it_holds_then_all_output_then_the_release(
    client: Client,
) -> None:
    """F11."""
    task = await held(client, "echo out; echo err >&2; exit 3")
    items = [item async for item in task.attach()]
    first, last = items[0], items[-1]
    assert isinstance(first, Attached)
    assert first.task.id == task.id
    assert isinstance(last, Released)
    assert (last.reason, heeler.outcome(last.task)) == (ReleaseReason.FINISHED, heeler.Exited(3))
    chunks = [item for item in items if isinstance(item, Chunk)]
    assert len(chunks) == len(items) - 2
    assert written(chunks, OutputStream.STDOUT) == b"out\n"
    assert written(chunks, OutputStream.STDERR) == b"err\n"


def written(chunks: list[Chunk], stream: OutputStream.ValueType) -> bytes:
    return b"".join(chunk.data for chunk in chunks if chunk.stream == stream)


async def test_a_hold_goes_on_at_its_byte_across_kills_of_the_daemon(
    client: Client, daemon: Daemon, tmp_path: Path
) -> None:
    """F6, R1."""
    gates = [Gate(tmp_path / str(number)) for number in range(3)]
    script = "; ".join(f"echo {number}; {gate.wait}" for number, gate in enumerate(gates))
    task = await held(client, f"{script}; exit 5")
    data, attached = b"", 0
    async with task.attach() as attachment:
        async for item in attachment:
            if isinstance(item, Attached):
                attached += 1
            elif isinstance(item, Chunk):
                assert item.offset == len(data)
                data += item.data
                assert attachment.offset == len(data)
                if data.endswith(b"\n"):
                    gate = gates[int(data.split()[-1])]
                    await asyncio.to_thread(daemon.restart)
                    gate.open()
    assert (data, attached) == (b"0\n1\n2\n", 1)
    assert attachment.released is not None
    assert heeler.outcome(attachment.released.task) == heeler.Exited(5)


async def test_a_hold_that_was_detached_during_a_break_is_released(
    client: Client, daemon: Daemon
) -> None:
    """F6, F7."""
    task = await held(client, "echo up; sleep 100")
    attachment = task.attach()
    while not isinstance(await anext(attachment), Chunk):
        pass
    # Nobody takes a step meanwhile, and so nobody reconnects.
    await asyncio.to_thread(daemon.restart)
    assert (await task.detach()).outcome == DetachOutcome.DETACHED
    released = await asyncio.wait_for(anext(attachment), 30)
    assert isinstance(released, Released)
    assert released.reason == ReleaseReason.DETACHED
    assert [item async for item in attachment] == []


async def test_an_unknown_task_cannot_be_attached_to(client: Client) -> None:
    """C9."""
    attachment = client.attach("shell-aaaaaaaaaa")
    with pytest.raises(heeler.TaskNotFound):
        await anext(attachment)
    with pytest.raises(StopAsyncIteration):
        await anext(attachment)


async def test_a_hold_gives_up_on_the_daemon_when_told(client: Client, daemon: Daemon) -> None:
    task = await held(client, "sleep 100")
    attachment = task.attach(give_up_after=0.3)
    await anext(attachment)
    daemon.kill()
    with pytest.raises(heeler.NotRunning, match="heeler serve --listen"):
        await anext(attachment)


async def test_a_step_that_times_out_loses_nothing(client: Client, gate: Gate) -> None:
    task = await held(client, f"echo one; {gate.wait}; echo two")
    attachment = task.attach()
    data = b""
    with contextlib.suppress(asyncio.TimeoutError):
        while True:
            item = await asyncio.wait_for(anext(attachment), 0.3)
            data += item.data if isinstance(item, Chunk) else b""
    gate.open()
    async for item in attachment:
        data += item.data if isinstance(item, Chunk) else b""
    assert data == b"one\ntwo\n"


async def test_whoever_leaves_lets_go(client: Client) -> None:
    """F6."""
    closed, abandoned = [await held(client, "echo up; sleep 100", window=1) for _ in range(2)]
    async with closed.attach() as attachment:
        await anext(attachment)
    async for _ in abandoned.attach():
        break
    for task in (closed, abandoned):
        assert (await task.wait()).end_reason == EndReason.OWNER_GONE


async def test_whoever_leaves_a_task_that_is_to_be_kept_changes_nothing(client: Client) -> None:
    task = await client.spawn(
        "sleep 100",
        placement=Placement.FOREGROUND,
        holder_window=0,
        on_holder_gone=HolderGoneAction.KEEP,
    )
    async with task.attach() as attachment:
        await anext(attachment)
    state = await task.snapshot()
    assert (state.state, state.placement) == (TaskState.RUNNING, Placement.FOREGROUND)


async def test_output_is_attached_to_from_a_place(client: Client) -> None:
    task = await client.spawn("printf 0123456789")
    await task.wait()

    async def read(attachment: heeler.Attachment) -> bytes:
        return b"".join([item.data async for item in attachment if isinstance(item, Chunk)])

    assert await read(task.attach(4)) == b"456789"
    assert await read(task.attach(tail_bytes=3)) == b"789"
    assert await read(client.attach(task)) == b"0123456789"
    with pytest.raises(ValueError, match="only one of offset and tail_bytes"):
        client.attach(task, offset=0, tail_bytes=0)


async def test_a_detach_releases_the_holder_and_the_process_stays(client: Client) -> None:
    """F1, F7."""
    task = await held(client, "echo up; sleep 100")
    assert task.spawned is not None
    pid = task.spawned.task.leader.pid
    attachment = task.attach()
    while not isinstance(await anext(attachment), Chunk):
        pass
    result = await task.detach(timeout=3600, reason="a key", actor="me")
    assert result.outcome == DetachOutcome.DETACHED
    released = await anext(attachment)
    assert isinstance(released, Released)
    assert (released.reason, released.task.leader.pid) == (ReleaseReason.DETACHED, pid)
    detached = released.task.detached
    assert (detached.cause, detached.reason) == (DetachCause.REQUESTED, "a key")
    assert detached.actor.name == "me"
    assert (await task.detach()).outcome == DetachOutcome.ALREADY_BACKGROUND
    assert alive(pid)
    await task.cancel()
    assert (await task.detach()).outcome == DetachOutcome.ALREADY_FINISHED


async def test_a_session_is_detached_and_waited_for(client: Client) -> None:
    """F7."""
    assert not (await client.detach(session="s")).results
    task = await client.spawn(
        "sleep 100", session="s", placement=Placement.FOREGROUND, holder_window=WINDOW
    )
    waiting = asyncio.create_task(task.wait(until=WaitCondition.RELEASED))
    with pytest.raises(heeler.StillRunning):
        await task.wait(until=WaitCondition.RELEASED, timeout=0)
    answer = await client.detach(session="s")
    assert [result.task.id for result in answer.results] == [task.id]
    assert (await waiting).placement == Placement.BACKGROUND
    with pytest.raises(ValueError, match="only one of task and session"):
        await client.detach(task, session="s")
