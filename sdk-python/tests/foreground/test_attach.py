"""Attaching to tasks, and detaching them."""

import asyncio
import contextlib
from pathlib import Path

import pytest

import heeler
from harness.daemon import Daemon, alive
from heeler import (
    Attached,
    AttachEnded,
    AttachEndReason,
    Chunk,
    Client,
    DetachCause,
    DetachOutcome,
    DisconnectAction,
    EndReason,
    Filter,
    OutputStream,
    Placement,
    TaskState,
    WaitCondition,
)

WINDOW = 60
"""A reattach window that is long enough for a slow machine."""


async def spawn_foreground(client: Client, script: str, window: float = WINDOW) -> heeler.Task:
    return await client.spawn(script, foreground=True, reattach_window=window)


class Gate:
    """A file that a task waits for."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.wait = f"while [ ! -e {file} ]; do sleep 0.01; done"

    def open(self) -> None:
        """Lets the task continue."""
        self._file.touch()


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    """A gate for this test alone."""
    return Gate(tmp_path / "go")


async def test_attach_streams_the_task_then_all_output_then_the_end(
    client: Client,
) -> None:
    """F11."""
    task = await spawn_foreground(client, "echo out; echo err >&2; exit 3")
    items = [item async for item in task.attach()]
    first, last = items[0], items[-1]
    assert isinstance(first, Attached)
    assert first.task.id == task.id
    assert isinstance(last, AttachEnded)
    assert (last.reason, heeler.outcome(last.task)) == (AttachEndReason.FINISHED, heeler.Exited(3))
    chunks = [item for item in items if isinstance(item, Chunk)]
    assert len(chunks) == len(items) - 2
    assert written(chunks, OutputStream.STDOUT) == b"out\n"
    assert written(chunks, OutputStream.STDERR) == b"err\n"


def written(chunks: list[Chunk], stream: OutputStream) -> bytes:
    return b"".join(chunk.data for chunk in chunks if chunk.stream == stream)


async def test_attach_resumes_at_the_same_byte_after_kills_of_the_daemon(
    client: Client, daemon: Daemon, tmp_path: Path
) -> None:
    """F6, R1."""
    gates = [Gate(tmp_path / str(number)) for number in range(3)]
    script = "; ".join(f"echo {number}; {gate.wait}" for number, gate in enumerate(gates))
    task = await spawn_foreground(client, f"{script}; exit 5")
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
    assert attachment.ended is not None
    assert heeler.outcome(attachment.ended.task) == heeler.Exited(5)


async def test_attach_ends_if_the_task_was_detached_during_a_break(
    client: Client, daemon: Daemon
) -> None:
    """F6, F7."""
    task = await spawn_foreground(client, "echo up; sleep 100")
    attachment = task.attach()
    while not isinstance(await anext(attachment), Chunk):
        pass
    # The attachment reconnects only in a step.
    await asyncio.to_thread(daemon.restart)
    assert (await task.detach()).outcome == DetachOutcome.DETACHED
    ended = await asyncio.wait_for(anext(attachment), 30)
    assert isinstance(ended, AttachEnded)
    assert ended.reason == AttachEndReason.DETACHED
    assert [item async for item in attachment] == []


async def test_attaching_to_an_unknown_task_is_refused(client: Client) -> None:
    """C9."""
    attachment = client.attach("shell-aaaaaaaaaa")
    with pytest.raises(heeler.TaskNotFoundError):
        await anext(attachment)
    with pytest.raises(StopAsyncIteration):
        await anext(attachment)


async def test_attach_gives_up_after_the_given_time(client: Client, daemon: Daemon) -> None:
    task = await spawn_foreground(client, "sleep 100")
    attachment = task.attach(give_up_after=0.3)
    await anext(attachment)
    daemon.kill()
    with pytest.raises(heeler.DaemonNotRunningError, match="heeler serve --listen"):
        await anext(attachment)


async def test_an_attach_step_that_times_out_loses_nothing(client: Client, gate: Gate) -> None:
    task = await spawn_foreground(client, f"echo one; {gate.wait}; echo two")
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


async def test_leaving_an_attachment_is_a_disconnect(client: Client) -> None:
    """F6."""
    closed, abandoned = [
        await spawn_foreground(client, "echo up; sleep 100", window=1) for _ in range(2)
    ]
    async with closed.attach() as attachment:
        await anext(attachment)
    async for _ in abandoned.attach():
        break
    for task in (closed, abandoned):
        assert (await task.wait()).end_reason == EndReason.CLIENT_DISCONNECTED


async def test_a_disconnect_from_a_task_with_keep_changes_nothing(client: Client) -> None:
    task = await client.spawn(
        "sleep 100",
        reattach_window=0,
        on_disconnect=DisconnectAction.KEEP,
    )
    async with task.attach() as attachment:
        await anext(attachment)
    state = await task.get()
    assert (state.state, state.placement) == (TaskState.RUNNING, Placement.FOREGROUND)


async def test_attach_starts_at_an_offset_or_near_the_end(client: Client) -> None:
    task = await client.spawn("printf 0123456789")
    await task.wait()

    async def read(attachment: heeler.Attachment) -> bytes:
        return b"".join([item.data async for item in attachment if isinstance(item, Chunk)])

    assert await read(task.attach(4)) == b"456789"
    assert await read(task.attach(tail_bytes=3)) == b"789"
    assert await read(client.attach(task)) == b"0123456789"
    with pytest.raises(ValueError, match="only one of offset and tail_bytes"):
        client.attach(task, offset=0, tail_bytes=0)


async def test_detach_ends_the_attachment_and_the_process_stays(client: Client) -> None:
    """F1, F7."""
    task = await spawn_foreground(client, "echo up; sleep 100")
    assert task.spawned is not None
    pid = task.spawned.task.leader.pid
    attachment = task.attach()
    while not isinstance(await anext(attachment), Chunk):
        pass
    result = await task.detach(timeout=3600, reason="a key", actor="me")
    assert result.outcome == DetachOutcome.DETACHED
    ended = await anext(attachment)
    assert isinstance(ended, AttachEnded)
    assert (ended.reason, ended.task.leader.pid) == (AttachEndReason.DETACHED, pid)
    detachment = ended.task.detachment
    assert (detachment.cause, detachment.reason) == (DetachCause.REQUESTED, "a key")
    assert (detachment.actor.name, detachment.timeout.seconds) == ("me", 3600)
    assert (await task.detach()).outcome == DetachOutcome.ALREADY_BACKGROUND
    assert alive(pid)
    await task.cancel()
    assert (await task.detach()).outcome == DetachOutcome.ALREADY_FINISHED


async def test_a_session_is_detached_and_waited_for(client: Client) -> None:
    """F7."""
    assert not await client.detach(filter=Filter(session="s"))
    task = await client.spawn("sleep 100", session="s", foreground=True, reattach_window=WINDOW)
    waiting = asyncio.create_task(task.wait(until=WaitCondition.OUT_OF_FOREGROUND))
    with pytest.raises(heeler.TaskStillRunningError):
        await task.wait(until=WaitCondition.OUT_OF_FOREGROUND, timeout=0)
    answer = await client.detach(filter=Filter(session="s"))
    assert [result.task.id for result in answer] == [task.id]
    assert (await waiting).placement == Placement.BACKGROUND
    assert not await client.detach(task, filter=Filter(session="other"))
