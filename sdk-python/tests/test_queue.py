"""Tasks that wait for one another, in queues and for keys; and how many may be live."""

import asyncio

import pytest

import heeler
from harness import Daemon
from heeler import Client, EndReason, ExclusiveMode, Filter, TaskEvent, TaskEventType, TaskState


async def state_of(task: heeler.Task) -> TaskState.ValueType:
    return (await task.snapshot()).state


async def test_a_queue_runs_one_at_a_time_and_tells_when_a_turn_comes(client: Client) -> None:
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


async def test_a_queue_is_changed_in_part(client: Client) -> None:
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
    with pytest.raises(heeler.InvalidField) as refused:
        await client.update_queue("q", slots=0)
    assert [bad.field for bad in refused.value.fields] == ["slots"]


async def test_a_command_that_is_run_waits_for_its_turn(client: Client) -> None:
    """X1."""
    first = await client.spawn("sleep 100", queue="q")
    running = asyncio.create_task(client.run("echo turn", queue="q"))
    async for item in client.watch(after=0, types=[TaskEventType.CREATED]):
        if isinstance(item, TaskEvent) and item.task.state == TaskState.QUEUED:
            break
    assert not running.done()
    await first.cancel()
    assert (await running).stdout == b"turn\n"


async def test_an_exclusive_key_rejects_replaces_or_queues(client: Client) -> None:
    """X1."""
    holder = await client.spawn("sleep 100", exclusive_key="k")
    with pytest.raises(heeler.ExclusiveKeyHeld) as refused:
        await client.spawn("true", exclusive_key="k")
    assert refused.value.metadata == {"exclusive_key": "k", "task_id": holder.id}
    new = await client.spawn("sleep 100", exclusive_key="k", exclusive_mode=ExclusiveMode.REPLACE)
    assert (await holder.snapshot()).end_reason == EndReason.REPLACED
    waiting = await client.spawn("exit 8", exclusive_key="k", exclusive_mode=ExclusiveMode.QUEUE)
    assert await state_of(waiting) == TaskState.QUEUED
    await new.cancel()
    assert heeler.outcome(await waiting.wait()) == heeler.Exited(8)


async def test_a_task_that_waits_is_cancelled_and_nothing_was_started(client: Client) -> None:
    """X1."""
    await client.spawn("sleep 100", queue="q")
    waiting = await client.spawn("sleep 100", queue="q")
    result = await waiting.cancel()
    assert result.task.state == TaskState.CANCELLED
    assert result.proof.method == heeler.ProofMethod.NEVER_STARTED


async def test_the_limits_of_a_session_and_of_a_label_are_named() -> None:
    """S11."""
    options = ("--max-per-session", "1", "--max-per-label", "team=1")
    daemon = Daemon("s.sock", *options)
    try:
        daemon.start()
        async with heeler.connect(daemon.address) as client:
            await client.spawn("sleep 100", session="s", labels={"team": "red"})
            with pytest.raises(heeler.SessionLimitReached) as session:
                await client.spawn("true", session="s")
            assert session.value.metadata == {"session_id": "s", "running": "1", "max": "1"}
            with pytest.raises(heeler.LabelLimitReached) as label:
                await client.spawn("true", labels={"team": "red"})
            assert label.value.metadata["label"] == "team"
    finally:
        daemon.clean_up()
