"""The command when the caller of run is cancelled or fails, and the reason that is kept."""

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

import heeler
from harness.daemon import Daemon, alive
from heeler import BackgroundTask, Chunk, Client, DisconnectAction, Placement, TaskState, v1


async def tasks_of(client: Client) -> list[BackgroundTask]:
    listed = client.list(include_finished=True, include_finished_foreground=True)
    return [task async for task in listed]


async def run_and_cancel(client: Client, message: str | None, **options: Any) -> BackgroundTask:
    """Runs a command, cancels the caller once it is up, and returns the task."""
    up = asyncio.Event()
    running = asyncio.create_task(
        client.run("echo up; sleep 100", on_output=lambda _: up.set(), **options)
    )
    await asyncio.wait_for(up.wait(), 30)
    running.cancel(message)
    with pytest.raises(asyncio.CancelledError):
        await running
    (task,) = await tasks_of(client)
    return task


async def test_cancelling_the_caller_ends_the_whole_tree(client: Client, tmp_path: Path) -> None:
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
    (task,) = await tasks_of(client)
    assert task.state == TaskState.CANCELLED


async def test_the_message_of_the_cancellation_is_the_reason(client: Client) -> None:
    """F13."""
    task = await run_and_cancel(client, "the user pressed a key: ü", cancel_reason="not this")
    assert (task.state, task.stop.reason) == (TaskState.CANCELLED, "the user pressed a key: ü")


async def test_the_message_of_the_cancellation_is_the_reason_of_a_detach(client: Client) -> None:
    """F13."""
    task = await run_and_cancel(client, "the user pressed a key", detach_on_cancel=True)
    assert (task.state, task.placement) == (TaskState.RUNNING, Placement.BACKGROUND)
    assert task.detachment.reason == "the user pressed a key"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"cancel_reason": "superseded"}, "superseded"),
        ({}, "the caller of run was ended by CancelledError"),
    ],
)
async def test_a_cancellation_without_a_message_has_the_given_reason(
    client: Client, given: dict[str, str], kept: str
) -> None:
    """F13."""
    assert (await run_and_cancel(client, None, **given)).stop.reason == kept


async def test_a_timeout_of_the_caller_has_the_given_reason(client: Client) -> None:
    """F13."""
    running = client.run("sleep 100", cancel_reason="took too long")
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(running, 0.5)
    (task,) = await tasks_of(client)
    assert (task.state, task.stop.reason) == (TaskState.CANCELLED, "took too long")


async def test_the_message_of_an_exception_of_on_output_is_the_reason(client: Client) -> None:
    """F13."""

    def fail(_: Chunk) -> None:
        raise LookupError("no room")

    with pytest.raises(LookupError, match="no room"):
        await client.run("echo up; sleep 100", on_output=fail)
    (task,) = await tasks_of(client)
    assert (task.state, task.stop.reason) == (TaskState.CANCELLED, "no room")


async def test_a_reason_that_is_too_long_is_cut_between_characters(client: Client) -> None:
    """F13."""
    task = await run_and_cancel(client, "x" * 4095 + "ü")
    assert (task.state, task.stop.reason) == (TaskState.CANCELLED, "x" * 4095)


async def test_a_caller_cancelled_during_spawn_leaves_nothing_behind(client: Client) -> None:
    """F13."""
    running = asyncio.create_task(client.run("sleep 100"))
    await asyncio.sleep(0)
    running.cancel("changed my mind")
    with pytest.raises(asyncio.CancelledError):
        await running
    tasks = await tasks_of(client)
    assert [task.state for task in tasks] in ([], [TaskState.CANCELLED])
    assert {task.stop.reason for task in tasks} <= {"changed my mind"}


async def test_detach_on_cancel_leaves_the_command_in_the_background(client: Client) -> None:
    """F5."""
    running = client.run("sleep 100", detach_on_cancel=True)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(running, 0.5)
    (task,) = await tasks_of(client)
    assert (task.state, task.placement) == (TaskState.RUNNING, Placement.BACKGROUND)
    # A caller that is killed has the same effect.
    assert task.spec.foreground.on_disconnect == DisconnectAction.DETACH


@pytest.fixture
def unkillable(client: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A client whose daemon answers each Cancel with a survivor."""

    def cancel(request: v1.CancelRequest) -> Awaitable[v1.CancelResponse]:
        survivors = v1.Survivors(processes=[v1.ProcessInfo(pid=7, command="stuck")])
        task = BackgroundTask(
            id=request.filter.task_ids[0],
            state=TaskState.STOPPING,
            stop=v1.StopRecord(proof=v1.Proof(survivors=survivors)),
        )
        answer = v1.CancelResponse(results=[v1.CancelResult(task=task)])
        return asyncio.sleep(0, answer)

    monkeypatch.setattr(client.raw, "Cancel", cancel)
    return client


async def test_a_tree_that_survives_its_kill_is_not_reported_as_cancelled(
    unkillable: Client,
) -> None:
    """C17."""
    running = asyncio.create_task(unkillable.run("sleep 100"))
    async for item in unkillable.watch_events(after=0):
        if isinstance(item, heeler.TaskEvent) and item.type == heeler.TaskEventType.STARTED:
            break
    running.cancel()
    with pytest.raises(heeler.TaskSurvivedError, match=r"still exist: 7 \(stuck\)") as error:
        await running
    assert error.value.task.stop.proof.survivors.processes[0].pid == 7


async def test_a_block_whose_task_survives_its_kill_raises(unkillable: Client) -> None:
    """C17."""
    with pytest.raises(heeler.TaskSurvivedError):
        async with await unkillable.spawn("sleep 100"):
            pass


async def test_a_cancelled_caller_without_a_daemon_is_still_cancelled(daemon: Daemon) -> None:
    async with heeler.connect(daemon.address, retry_for=0.1) as client:
        up = asyncio.Event()
        running = asyncio.create_task(
            client.run("echo up; sleep 100", on_output=lambda _: up.set())
        )
        await asyncio.wait_for(up.wait(), 30)
        await asyncio.to_thread(daemon.kill)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(running, 30)
