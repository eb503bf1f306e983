"""Spawn, Wait, List, Inspect, Remove, Shutdown."""

import asyncio
import signal
from datetime import timedelta
from pathlib import Path

import pytest

import heeler
from harness.daemon import Daemon
from heeler import Client, Exited, Filter, Placement, TaskEventType, TaskKind, TaskState


async def written(task: heeler.Task) -> str:
    return b"".join([chunk.data async for chunk in task.output()]).decode()


async def test_a_script_runs_in_a_shell_and_wait_returns_its_exit_code(client: Client) -> None:
    """S1."""
    task = await client.spawn("exit 3")
    assert task.id.startswith("shell-")
    ended = await task.wait()
    assert ended.state == TaskState.FAILED
    assert heeler.outcome(ended) == Exited(3)


async def test_a_sequence_runs_without_a_shell(client: Client) -> None:
    task = await client.spawn([Path("/bin/echo"), "$HOME", "a  b", ""])
    assert await written(task) == "$HOME a  b \n"


async def test_options_of_spawn_reach_the_task(client: Client, tmp_path: Path) -> None:
    parent = await client.spawn("sleep 100")
    task = await client.spawn(
        'pwd; echo "$GREETING ${HOME-none} ${GIT_PAGER-none}"; sleep 100',
        session="s",
        name="n",
        kind=TaskKind.AGENT,
        shell_program="/bin/sh",
        cwd=tmp_path,
        env={"GREETING": "hi", "HOME": None},
        env_defaults=heeler.EnvironmentDefaults.NONE,
        labels={"team": "red"},
        parent=parent,
        timeout=timedelta(hours=1),
        grace=0.25,
        stop_signal=signal.SIGINT,
    )
    shown = (await task.get()).spec
    assert (shown.session_id, shown.name, shown.parent_id) == ("s", "n", parent.id)
    assert (shown.kind, shown.shell.program) == (TaskKind.AGENT, "/bin/sh")
    assert dict(shown.labels) == {"team": "red"}
    assert shown.timeout.seconds == 3600
    assert shown.stop.grace.nanos == 250_000_000
    assert shown.stop.signal == "SIGINT"
    lines = task.lines()
    assert (await anext(lines)).text == str(tmp_path)
    assert (await anext(lines)).text == "hi none none"


async def test_a_task_that_runs_too_long_is_timed_out(client: Client) -> None:
    """T1."""
    ended = await (await client.spawn("sleep 100", timeout=0.05)).wait()
    assert ended.state == TaskState.TIMED_OUT
    assert ended.end_reason == heeler.EndReason.TIMEOUT


async def test_the_same_request_id_returns_the_same_task(client: Client) -> None:
    """S9."""
    first = await client.spawn("sleep 100", request_id="once")
    again = await client.spawn("sleep 100", request_id="once")
    assert first.id == again.id
    assert first.spawned is not None
    assert first.spawned == again.spawned
    with pytest.raises(heeler.RequestIdReusedError) as refused:
        await client.spawn("sleep 200", request_id="once")
    assert refused.value.metadata == {"request_id": "once", "task_id": first.id}


async def test_two_spawns_without_a_request_id_are_two_tasks(client: Client) -> None:
    one, two = await client.spawn("true"), await client.spawn("true")
    assert one.id != two.id


async def test_wait_times_out_with_the_state_of_the_task(client: Client) -> None:
    """L4."""
    task = await client.spawn("sleep 100")
    with pytest.raises(heeler.TaskStillRunningError) as late:
        await task.wait(timeout=0.05)
    assert late.value.task.id == task.id
    assert isinstance(late.value, TimeoutError)
    assert (await task.get()).state == TaskState.RUNNING


async def test_wait_is_for_some_or_all_tasks_or_a_session(client: Client) -> None:
    """L4."""
    quick = [await client.spawn("true", session="s") for _ in range(2)]
    slow = await client.spawn("sleep 100", session="s")
    some = await client.wait(slow, *quick, count=2)
    assert some.satisfied
    assert {task.id for task in some.met} == {task.id for task in quick}
    assert (await client.wait(*quick)).satisfied
    session = await client.wait(filter=Filter(session="s"), timeout=0)
    assert not session.satisfied
    assert [task.id for task in session.pending] == [slow.id]


async def test_a_timeout_of_the_caller_does_not_end_the_task(client: Client) -> None:
    """L5."""
    task = await client.spawn("sleep 100")
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(task.wait(), 0.05)
    assert (await task.get()).state == TaskState.RUNNING


async def test_cancelling_the_caller_of_wait_does_not_end_the_task(client: Client) -> None:
    """L5."""
    task = await client.spawn("sleep 100")
    waiting = asyncio.create_task(task.wait())
    await task.get()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert (await task.get()).state == TaskState.RUNNING


async def test_list_filters_and_reads_all_pages(client: Client) -> None:
    """L1."""
    live = [await client.spawn("sleep 100", labels={"n": str(n)}, session="s") for n in range(5)]
    finished = await client.spawn("true", session="s")
    await finished.wait()
    await client.spawn("sleep 100", session="other")

    here = Filter(session="s")
    listed = [task.id async for task in client.list(here, page_size=2)]
    assert listed == [task.id for task in reversed(live)]
    everything = [task.id async for task in client.list(here, include_finished=True, page_size=2)]
    assert everything == [*listed, finished.id]
    third = [task.id async for task in client.list(Filter(labels={"n": "3"}))]
    assert third == [live[3].id]
    completed = Filter(states=[TaskState.COMPLETED], kinds=[TaskKind.SHELL], tasks=[finished])
    assert [task.id async for task in client.list(completed)] == [finished.id]
    assert [task async for task in client.list(Filter(session="none"))] == []


async def test_list_filters_by_queue_placement_directory_and_staleness(
    client: Client, tmp_path: Path
) -> None:
    """L1."""
    queued = await client.spawn("sleep 100", queue="q")
    foreground = await client.spawn("sleep 100", foreground=True, reattach_window=60)
    below = tmp_path / "below"
    below.mkdir()
    elsewhere = await client.spawn("sleep 100", cwd=below, stale_after=0.1)
    async for event in elsewhere.events():
        if event.type == TaskEventType.STALE:
            break
    for selection, task in (
        (Filter(queue="q"), queued),
        (Filter(placement=Placement.FOREGROUND), foreground),
        (Filter(directory=tmp_path), elsewhere),
        (Filter(stale=True), elsewhere),
        (Filter(stale=False, placement=Placement.BACKGROUND), queued),
    ):
        assert [found.id async for found in client.list(selection)] == [task.id]


async def test_a_page_has_its_revision_and_the_server(client: Client) -> None:
    await client.spawn("sleep 100")
    page = await client.list_page()
    assert page.revision > 0
    assert page.server.live_tasks == 1
    with pytest.raises(heeler.PageTokenMismatchError):
        await client.list_page(page_token="none")


async def test_inspect_has_processes_resources_and_output(client: Client) -> None:
    """L3."""
    task = await client.spawn("printf abcdef; exec sleep 100")
    await anext(task.output())
    shown = await task.inspect(output_tail_bytes=3)
    assert [process.pid for process in shown.processes] == [shown.task.leader.pid]
    assert shown.resources.process_count == 1
    assert b"".join(chunk.data for chunk in shown.output_tail.chunks) == b"def"


async def test_remove_deletes_finished_tasks_and_refuses_live_ones(client: Client) -> None:
    """L6."""
    live = await client.spawn("sleep 100")
    with pytest.raises(heeler.TaskNotFinishedError) as refused:
        await live.remove()
    assert refused.value.metadata["task_id"] == live.id
    finished = [await client.spawn("true") for _ in range(3)]
    await client.wait(*finished)
    await finished[0].remove()
    with pytest.raises(heeler.TaskNotFoundError):
        await finished[0].get()
    removed = await client.remove(filter=Filter())
    assert set(removed.removed_task_ids) == {finished[1].id, finished[2].id}


async def test_the_events_of_a_task_stop_after_ended(client: Client) -> None:
    """E1."""
    task = await client.spawn("echo bye")
    events = [event async for event in task.events()]
    assert [TaskEventType(event.type).name for event in events] == ["CREATED", "STARTED", "ENDED"]
    assert events[-1].output_tail.chunks[0].data == b"bye\n"
    with pytest.raises(heeler.TaskNotFoundError):
        await anext(client.task("shell-aaaaaaaaaa").events())


async def test_shutdown_leaves_tasks_running_or_stops_them(client: Client, daemon: Daemon) -> None:
    """R7."""
    task = await client.spawn("sleep 100")
    assert (await client.shutdown()).live_tasks == 1
    assert daemon.exited() == 0
    daemon.start()
    assert (await task.get()).state == TaskState.RUNNING
    assert (
        await client.shutdown(tasks=heeler.ShutdownTasks.STOP, reason="done")
    ).stopped_tasks == 1
    assert daemon.exited() == 0
    daemon.start()
    ended = await task.wait()
    assert ended.end_reason == heeler.EndReason.SERVER_SHUTDOWN
    assert ended.stop.reason == "done"
