"""The event stream: complete, in order, without repetition, across restarts."""

import asyncio
import contextlib
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import grpc
import pytest

import heeler
from harness.daemon import DEADLINE, Daemon
from heeler import (
    BackgroundTask,
    Bookmark,
    Client,
    Filter,
    TaskEvent,
    TaskEventType,
    TaskKind,
    TaskState,
)
from heeler._streams.resuming import ResumingStream


async def test_watch_streams_events_after_a_revision_and_bookmarks(client: Client) -> None:
    """E2, E5."""
    task = await client.spawn("exit 3")
    await task.wait()
    async with client.watch_events(after=0) as watch:
        items = [await anext(watch) for _ in range(4)]
    assert isinstance(items[0], Bookmark)
    events = [item for item in items if isinstance(item, TaskEvent)]
    assert [event.revision for event in events] == [1, 2, 3]
    assert events[-1].task.state == TaskState.FAILED
    assert watch.bookmark == Bookmark(revision=3, epoch=items[0].epoch)


async def test_the_initial_state_comes_before_the_first_bookmark(client: Client) -> None:
    """E3."""
    tasks = [await client.spawn("sleep 100") for _ in range(2)]
    watch = client.watch_events(initial_state=True)
    first, second, third = [await anext(watch) for _ in range(3)]
    assert isinstance(first, BackgroundTask)
    assert isinstance(second, BackgroundTask)
    assert {first.id, second.id} == {task.id for task in tasks}
    assert isinstance(third, Bookmark)
    await tasks[0].cancel()
    stopping = await anext(watch)
    assert isinstance(stopping, TaskEvent)
    assert stopping.type == TaskEventType.STOPPING


async def test_watch_filters_events_and_still_sends_bookmarks(client: Client) -> None:
    """E8."""
    watch = client.watch_events(
        after=0,
        filter=Filter(session="s"),
        types=[TaskEventType.ENDED],
        bookmark_interval=0.1,
    )
    await (await client.spawn("true")).wait()
    mine = await client.spawn("true", session="s")
    async for item in watch:
        if isinstance(item, TaskEvent):
            assert (item.task.id, item.type) == (mine.id, TaskEventType.ENDED)
            break
    assert isinstance(await anext(watch), Bookmark)


async def test_session_activity_counts_live_tasks_until_idle(client: Client) -> None:
    """E9."""
    agent = await client.spawn("sleep 100", session="s", kind=TaskKind.AGENT)
    await (await client.spawn("true", session="s")).wait()
    await agent.cancel()
    activities = []
    async for item in client.watch_events(after=0, filter=Filter(session="s")):
        if isinstance(item, TaskEvent) and item.HasField("session_activity"):
            activity = item.session_activity
            activities.append((activity.agents, activity.shells, item.HasField("task")))
            if item.type == TaskEventType.SESSION_IDLE:
                break
    assert activities == [
        (1, 0, True),
        (1, 1, True),
        (1, 0, True),
        (0, 0, True),
        (0, 0, False),
    ]


async def test_silence_and_its_end_are_events(client: Client, tmp_path: Path) -> None:
    """T5."""
    gate = tmp_path / "go"
    script = f"while [ ! -e {gate} ]; do sleep 0.01; done; echo on; sleep 100"
    task = await client.spawn(script, stale_after=0.3)
    types = []
    async for event in task.events():
        types.append(event.type)
        if event.type == TaskEventType.STALE:
            assert event.task.stale
            await asyncio.to_thread(gate.touch)
        elif event.type == TaskEventType.ACTIVE:
            break
    assert types[-2:] == [TaskEventType.STALE, TaskEventType.ACTIVE]


async def test_a_watch_step_that_times_out_loses_nothing(client: Client) -> None:
    watch = client.watch_events(after=0, filter=Filter(session="s"))
    revisions = []
    for _ in range(3):
        with contextlib.suppress(asyncio.TimeoutError):
            while True:
                item = await asyncio.wait_for(anext(watch), 0.05)
                if isinstance(item, TaskEvent):
                    revisions.append(item.revision)
        await (await client.spawn("true", session="s")).wait()
    last = (await client.list_page()).revision
    while not revisions or revisions[-1] < last:
        item = await anext(watch)
        if isinstance(item, TaskEvent):
            revisions.append(item.revision)
    assert revisions == list(range(1, last + 1))


async def test_watch_resumes_after_kills_of_the_daemon(client: Client, daemon: Daemon) -> None:
    """E2, R1."""
    watch = client.watch_events(after=0)
    spawned: list[str] = []

    async def work() -> None:
        for _ in range(3):
            running = await client.spawn("sleep 0.05")
            spawned.append(running.id)
            await asyncio.to_thread(daemon.restart)
            spawned.append((await client.spawn("exit 3")).id)

    working = asyncio.create_task(work())
    events: list[TaskEvent] = []
    while not working.done() or ends(events) < len(spawned):
        item = await asyncio.wait_for(anext(watch), 30)
        if isinstance(item, TaskEvent):
            events.append(item)
    await working
    assert [event.revision for event in events] == list(range(1, len(events) + 1))
    assert len(spawned) == 6
    for task_id in spawned:
        types = [event.type for event in events if event.task.id == task_id]
        assert types == [TaskEventType.CREATED, TaskEventType.STARTED, TaskEventType.ENDED]


def ends(events: list[TaskEvent]) -> int:
    return sum(event.type == TaskEventType.ENDED for event in events)


async def test_watch_resumes_after_a_shutdown(client: Client, daemon: Daemon) -> None:
    """E2, R7."""
    watch = client.watch_events()
    await anext(watch)
    task = await client.spawn("sleep 100")
    await client.shutdown()
    daemon.exited()
    daemon.start()
    await task.cancel()
    types = []
    async for item in watch:
        if isinstance(item, TaskEvent):
            types.append(TaskEventType(item.type).name)
            if item.type == TaskEventType.ENDED:
                break
    assert types == ["CREATED", "STARTED", "STOPPING", "ENDED"]


async def test_a_stored_bookmark_resumes_another_watch(client: Client, daemon: Daemon) -> None:
    """E2, R1."""
    await (await client.spawn("true")).wait()
    async with client.watch_events(after=0) as watch:
        async for item in watch:
            if isinstance(item, TaskEvent) and item.type == TaskEventType.STARTED:
                break
    daemon.restart()
    assert watch.bookmark is not None
    async for item in client.watch_events(after=watch.bookmark):
        if isinstance(item, TaskEvent):
            assert item.type == TaskEventType.ENDED
            break


async def test_watch_from_now_has_no_past_events(client: Client, daemon: Daemon) -> None:
    await (await client.spawn("true")).wait()
    watch = client.watch_events()
    assert isinstance(await anext(watch), Bookmark)
    daemon.restart()
    task = await client.spawn("sleep 100")
    async for item in watch:
        if isinstance(item, TaskEvent):
            assert (item.task.id, item.type) == (task.id, TaskEventType.CREATED)
            break


async def test_an_unknown_revision_ends_the_watch(client: Client) -> None:
    """E4."""
    watch = client.watch_events(after=1000)
    with pytest.raises(heeler.RevisionOutOfRangeError) as refused:
        await anext(watch)
    assert set(refused.value.metadata) == {"oldest", "newest"}
    with pytest.raises(StopAsyncIteration):
        await anext(watch)


async def test_another_epoch_ends_the_watch(client: Client) -> None:
    """E4."""
    foreign = Bookmark(revision=0, epoch="elsewhere")
    with pytest.raises(heeler.EpochMismatchError):
        await anext(client.watch_events(after=foreign))


async def test_watch_gives_up_after_the_given_time(client: Client, daemon: Daemon) -> None:
    watch = client.watch_events(give_up_after=0.3)
    await anext(watch)
    daemon.kill()
    with pytest.raises(heeler.DaemonNotRunningError, match="heeler serve --listen"):
        await anext(watch)


async def test_closing_a_watch_ends_the_loop_of_another_task(client: Client) -> None:
    watch = client.watch_events(after=0)
    assert isinstance(await anext(watch), Bookmark)

    async def rest() -> list[object]:
        return [item async for item in watch]

    reading = asyncio.create_task(rest())
    await asyncio.sleep(0)
    assert watch._call is not None
    await watch.aclose()
    assert await asyncio.wait_for(reading, DEADLINE) == []


async def test_a_watch_that_is_closed_and_cancelled_is_cancelled(client: Client) -> None:
    watch = client.watch_events(after=0)
    await anext(watch)
    reading = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)
    reading.cancel()
    await watch.aclose()
    await asyncio.wait([reading])
    assert reading.cancelled() or sys.version_info < (3, 11)


class Unreachable(ResumingStream[object, object]):
    """A stream from a host that answers no packet."""

    now = 0.0
    attempts = 0

    def _open(self) -> Any:
        self.attempts += 1
        return SimpleNamespace(read=self._read_nothing, cancel=lambda: None)

    async def _read_nothing(self) -> object:
        self.now += 20
        none = grpc.aio.Metadata()
        text = "failed to connect to all addresses; last error: tcp handshaker shutdown"
        raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, none, none, text)

    def _receive(self, message: object) -> list[object]:
        return [message]

    def _is_final(self, error: heeler.HeelerError) -> bool:
        return False


async def test_a_stream_gives_up_although_each_attempt_to_connect_takes_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address = heeler.Address.parse("tls:10.0.0.9:7117")
    stream = Unreachable(cast(Client, SimpleNamespace(closed=False, address=address)), 50)
    clock = SimpleNamespace(monotonic=lambda: stream.now)
    monkeypatch.setattr("heeler._streams.resuming.time", clock)
    with pytest.raises(heeler.DaemonUnreachableError):
        await asyncio.wait_for(anext(stream), DEADLINE)
    assert stream.attempts == 3


async def test_closing_the_client_ends_a_watch(daemon: Daemon) -> None:
    client = await heeler.connect(daemon.address)
    watch = client.watch_events()
    await anext(watch)
    waiting = asyncio.ensure_future(anext(watch))
    await client.list_page()
    await client.close()
    with pytest.raises(heeler.ClientClosedError):
        await waiting
