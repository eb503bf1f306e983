"""The handle of a session: its tasks, their number, and the moment when none is left."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import pytest

import heeler
from harness.daemon import DEADLINE, Daemon
from heeler import Client, Exited, Filter, SessionCounts, TaskEvent, TaskState, v1

T = TypeVar("T")


async def within(work: Awaitable[T]) -> T:
    return await asyncio.wait_for(work, DEADLINE)


async def test_the_sessions_name_their_live_tasks(client: Client) -> None:
    """E9."""
    session = client.session("s1")
    assert await session.info() is None
    assert await session.counts() == heeler.SessionCounts(0, 0, 0)
    shell = await session.spawn("sleep 1000")
    agent = await session.spawn("exec sleep 1000", kind="agent", stale_after=0.1)
    work = await client.register(session="s1")
    await client.session("s2").spawn("sleep 1000")
    found = {one.activity.session_id: one async for one in client.sessions()}
    assert list(found) == ["s1", "s2"]
    activity = found["s1"].activity
    assert list(activity.shell_ids) == [shell.id]
    assert list(activity.agent_ids) == [agent.id]
    assert list(activity.hosted_ids) == [work.task.id]
    assert await session.counts() == heeler.SessionCounts(1, 1, 1)
    await work.finish()
    await shell.cancel()
    async with session.watch(after=0, types=["stale"]) as watch:
        async for item in watch:
            if isinstance(item, heeler.TaskEvent):
                break
    info = await session.info()
    assert info is not None
    assert info.only_stale
    assert info.HasField("since_time")


async def test_a_session_has_only_its_own_tasks(client: Client) -> None:
    session = client.session("one")
    other = await client.session("other").spawn("sleep 100")
    shell = await session.spawn("sleep 100")
    agent = await session.spawn(["sleep", "100"], kind="agent")
    assert {task.id async for task in session.list()} == {shell.id, agent.id}
    agents = session.list(Filter(kinds=["agent"]))
    assert [task.id async for task in agents] == [agent.id]
    assert await session.counts() == SessionCounts(agents=1, shells=1)

    (stopped,) = await session.cancel(filter=Filter(kinds=["agent"]), reason="superseded")
    assert (stopped.task.id, stopped.task.stop.reason) == (agent.id, "superseded")
    assert await session.counts() == SessionCounts(agents=0, shells=1)
    assert [result.task.id for result in await session.cancel(force=True)] == [shell.id]
    assert await session.counts() == SessionCounts(agents=0, shells=0)
    assert await session.cancel() == []
    assert (await other.get()).state == TaskState.RUNNING


async def test_a_command_in_the_foreground_belongs_to_the_session(client: Client) -> None:
    session = client.session("s")
    result = await session.run("echo hello; exit 3", name="greeting")
    assert (result.stdout, result.outcome) == (b"hello\n", Exited(3))
    assert (result.task.spec.session_id, result.task.spec.name) == ("s", "greeting")


async def test_an_idle_session_is_not_waited_for(client: Client) -> None:
    session = client.session("s")
    await within(session.wait_until_idle())
    await (await session.spawn("true")).wait()
    await client.session("other").spawn("sleep 100")
    await within(session.wait_until_idle())


async def test_idle_comes_after_the_last_of_several_tasks(client: Client) -> None:
    """E9."""
    session = client.session("s")
    first = await session.spawn("sleep 100")
    idle = asyncio.create_task(session.wait_until_idle())
    second = await session.spawn("sleep 100")
    await first.cancel()
    assert not idle.done()
    assert (await second.get()).state == TaskState.RUNNING
    await second.cancel()
    await within(idle)


async def test_idle_is_waited_for_across_a_kill_of_the_daemon(
    daemon: Daemon, client: Client
) -> None:
    """R1, E9."""
    session = client.session("s")
    task = await session.spawn("sleep 100")
    idle = asyncio.create_task(session.wait_until_idle())
    await asyncio.to_thread(daemon.restart)
    assert not idle.done()
    await task.cancel()
    await within(idle)


async def test_counts_of_events_are_none_where_an_event_has_none(client: Client) -> None:
    """E9."""
    session = client.session("s")
    async with session.watch() as watch:
        assert isinstance(await within(anext(watch)), heeler.Bookmark)
        task = await session.spawn("sleep 100", kind="agent")
        await task.cancel()
        events = []
        async for item in watch:
            if isinstance(item, TaskEvent):
                events.append(item)
                if item.type == heeler.TaskEventType.SESSION_IDLE:
                    break
    counted = [
        (heeler.TaskEventType(event.type).name, heeler.session_counts(event)) for event in events
    ]
    assert counted == [
        ("CREATED", SessionCounts(1, 0)),
        ("STARTED", None),
        ("STOPPING", None),
        ("ENDED", SessionCounts(0, 0)),
        ("SESSION_IDLE", SessionCounts(0, 0)),
    ]
    assert events[1].session_activity.agents == 0, "the absent message reads as zeros"


async def test_the_session_of_the_handle_cannot_be_changed(client: Client) -> None:
    session = client.session("s")
    with pytest.raises(TypeError, match=r"Session\.spawn\(\) .* argument 'session'"):
        await session.spawn("true", session="other")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Session\.run\(\) .* argument 'session'"):
        await session.run("true", session="other")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="the filter is for the session 'other', not 's'"):
        session.list(Filter(session="other"))
    with pytest.raises(ValueError, match="cannot be empty"):
        client.session("")


def test_the_blocking_session_does_the_same(sync_client: heeler.sync.Client) -> None:
    session = sync_client.session("s")
    session.wait_until_idle()
    assert session.run("echo hello").stdout == b"hello\n"
    task = session.spawn("sleep 100", kind="agent")
    assert session.counts() == SessionCounts(agents=1, shells=0)
    assert [found.id for found in session.list()] == [task.id]
    with pytest.raises(TimeoutError):
        sync_client.within(0.1).session("s").wait_until_idle()
    with session.watch(initial_state=True) as watch:
        assert isinstance(next(watch), v1.BackgroundTask)
    (result,) = session.cancel()
    assert result.task.state == TaskState.CANCELLED
    session.wait_until_idle()


async def test_the_tasks_of_a_session_end_with_the_watch_that_owns_it(client: Client) -> None:
    """E10."""
    session = client.session("s")
    with pytest.raises(ValueError, match="reattach_window needs own_session"):
        session.watch(reattach_window=1)
    async with session.watch(own_session="s", reattach_window=0.2) as owner:
        await within(anext(owner))
        task = await session.spawn("sleep 1000")
        info = await session.info()
        assert info is not None
        assert info.owners == 1
    ended = await within(task.wait())
    assert ended.state == TaskState.CANCELLED
    assert ended.stop.reason == 'the last owner of session "s" is gone'
