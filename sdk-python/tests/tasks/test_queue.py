"""Queues, exclusive keys, and limits on live tasks."""

import asyncio

import pytest

import heeler
from harness.daemon import Daemon
from heeler import Client, EndReason, ExclusiveMode, Filter, TaskEvent, TaskEventType, TaskState


async def state_of(task: heeler.Task) -> TaskState:
    return TaskState((await task.get()).state)


async def test_a_queue_runs_one_task_at_a_time(client: Client) -> None:
    """X1."""
    first = await client.spawn("sleep 100", queue="q")
    second = await client.spawn("exit 3", queue="q")
    assert second.spawned is not None
    assert second.spawned.task.state == TaskState.QUEUED
    (queue,) = (await client.list_queues()).queues
    assert (queue.name, queue.slots, queue.running, queue.waiting) == ("q", 1, 1, 1)
    queued = Filter(states=[TaskState.QUEUED])
    assert [task.id async for task in client.list(queued)] == [second.id]
    await first.cancel()
    assert heeler.outcome(await second.wait()) == heeler.Exited(3)
    assert [event.type async for event in second.events()] == [
        TaskEventType.CREATED,
        TaskEventType.ADMITTED,
        TaskEventType.STARTED,
        TaskEventType.ENDED,
    ]


async def test_update_queue_changes_only_the_given_settings(client: Client) -> None:
    """X1."""
    queue = (await client.update_queue("q", slots=2, paused=True)).queue
    assert (queue.slots, queue.paused) == (2, True)
    tasks = [await client.spawn("sleep 100", queue="q") for _ in range(2)]
    assert [await state_of(task) for task in tasks] == [TaskState.QUEUED] * 2
    queue = (await client.update_queue("q", paused=False)).queue
    assert (queue.slots, queue.paused) == (2, False)
    for task in tasks:
        async for event in task.events():
            if event.type == TaskEventType.STARTED:
                break
    with pytest.raises(heeler.InvalidFieldError) as refused:
        await client.update_queue("q", slots=0)
    assert [bad.field for bad in refused.value.fields] == ["slots"]


async def test_run_waits_in_the_queue(client: Client) -> None:
    """X1."""
    first = await client.spawn("sleep 100", queue="q")
    running = asyncio.create_task(client.run("echo ran", queue="q"))
    async for item in client.watch_events(after=0, types=[TaskEventType.CREATED]):
        if isinstance(item, TaskEvent) and item.task.state == TaskState.QUEUED:
            break
    assert not running.done()
    await first.cancel()
    assert (await running).stdout == b"ran\n"


async def test_an_exclusive_key_rejects_replaces_or_queues(client: Client) -> None:
    """X1."""
    holder = await client.spawn("sleep 100", exclusive_key="k")
    with pytest.raises(heeler.ExclusiveKeyHeldError) as refused:
        await client.spawn("true", exclusive_key="k")
    assert refused.value.metadata == {"exclusive_key": "k", "task_id": holder.id}
    new = await client.spawn("sleep 100", exclusive_key="k", exclusive_mode=ExclusiveMode.REPLACE)
    assert (await holder.get()).end_reason == EndReason.REPLACED
    waiting = await client.spawn("exit 8", exclusive_key="k", exclusive_mode=ExclusiveMode.QUEUE)
    assert await state_of(waiting) == TaskState.QUEUED
    await new.cancel()
    assert heeler.outcome(await waiting.wait()) == heeler.Exited(8)


async def test_cancel_of_a_queued_task_starts_nothing(client: Client) -> None:
    """X1."""
    await client.spawn("sleep 100", queue="q")
    waiting = await client.spawn("sleep 100", queue="q")
    result = await waiting.cancel()
    assert result.task.state == TaskState.CANCELLED
    assert result.task.stop.proof.proven == heeler.ProofMethod.NEVER_STARTED


async def test_the_limits_of_a_session_and_of_a_label_have_their_own_errors() -> None:
    """S11."""
    options = ("--max-per-session", "1", "--max-per-label", "team=1")
    daemon = Daemon("s.sock", *options)
    try:
        daemon.start()
        async with heeler.connect(daemon.address) as client:
            await client.spawn("sleep 100", session="s", labels={"team": "red"})
            with pytest.raises(heeler.SessionLimitReachedError) as session:
                await client.spawn("true", session="s")
            assert session.value.metadata == {"session_id": "s", "running": "1", "max": "1"}
            with pytest.raises(heeler.LabelLimitReachedError) as label:
                await client.spawn("true", labels={"team": "red"})
            assert label.value.metadata["label"] == "team"
    finally:
        daemon.clean_up()
