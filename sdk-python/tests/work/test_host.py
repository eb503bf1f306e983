"""Work that runs inside this program, and what its end means for the task."""

import asyncio

import pytest

import heeler
from harness.daemon import DEADLINE, Daemon
from heeler import (
    BlockKind,
    Client,
    Delivered,
    EndReason,
    TaskKind,
    TaskState,
    Work,
    WorkCancelMode,
    WorkerStatus,
    WorkResult,
)


async def test_the_value_of_a_body_is_the_result(client: Client) -> None:
    """P2, P7."""

    async def review(work: Work) -> str:
        listed = [task async for task in client.session("s1").list()]
        assert [(task.id, task.spec.kind) for task in listed] == [(work.task.id, TaskKind.HOSTED)]
        assert await client.session("s1").counts() == heeler.SessionCounts(0, 0, 1)
        await work.report(intent="reads", percent=50, counts={"files": 3})
        await work.tool_call("grep", "-rn TODO")
        await work.tool_result("grep", "two lines")
        await work.thought("both are old")
        await work.text("Two findings.")
        await work.note("done")
        return "two findings"

    task = await client.host(review, session="s1", name="review")
    assert (task.state, task.result.text) == (TaskState.COMPLETED, "two findings")
    assert heeler.outcome(task) == Delivered(WorkerStatus.OK)
    assert (task.progress.intent, task.progress.percent) == ("reads", 50)
    assert dict(task.progress.counts) == {"files": 3}
    inspected = await client.inspect(task)
    assert inspected.task == task
    assert [(BlockKind(block.kind).name, block.name, block.text) for block in inspected.blocks] == [
        ("TOOL_CALL", "grep", "-rn TODO"),
        ("TOOL_RESULT", "grep", "two lines"),
        ("THOUGHT", "", "both are old"),
        ("TEXT", "", "Two findings."),
        ("NOTE", "", "done"),
    ]
    assert [event async for event in client.task(task).events()][-1].task == task


async def test_an_exception_of_a_body_is_a_failed_task_and_is_raised(client: Client) -> None:
    """P2."""

    async def fail(_: Work) -> None:
        raise LookupError("it broke")

    async def too_long(_: Work) -> str:
        return "x" * 100_000

    with pytest.raises(LookupError, match="it broke"):
        await client.session("s1").host(fail)
    with pytest.raises(ValueError, match="100000 bytes"):
        await client.session("s1").host(too_long)
    with pytest.raises(TypeError, match="not int"):
        await client.session("s1").host(lambda _: asyncio.sleep(0, 3))  # type: ignore[arg-type]
    ended = [task async for task in client.session("s1").list(include_finished=True)]
    assert {task.end_reason for task in ended} == {EndReason.WORKER_FAILED}
    assert ended[-1].result.text == "it broke"


async def test_a_soft_cancel_lets_the_tool_call_finish_and_keeps_the_result(client: Client) -> None:
    """C18, P2, P7."""
    finished = []

    async def work_on(work: Work) -> WorkResult:
        cancelling = asyncio.create_task(work.task.cancel(reason="superseded", actor="host"))
        while not work.stopping.is_set():
            await asyncio.sleep(0.02)  # a tool call
            finished.append("call")
        assert not work.cancelled.is_set()
        request = work.cancel_request
        assert request is not None
        assert (request.mode, request.reason) == (WorkCancelMode.SOFT, "superseded")
        assert request.cause == EndReason.CANCELLED
        assert not cancelling.done()
        return WorkResult.cancelled("half of it", data=b"\x00\xff")

    task = await client.host(work_on)
    assert finished
    assert (task.state, task.end_reason) == (TaskState.CANCELLED, EndReason.CANCELLED)
    assert (task.result.text, task.result.data) == ("half of it", b"\x00\xff")
    assert not task.stop.forced
    assert (await client.inspect(task)).task.result == task.result


async def test_the_final_phase_of_a_cancel_cancels_the_body(client: Client) -> None:
    """C18, P2, P7."""
    seen = []

    async def work_on(work: Work) -> WorkResult:
        cancelling = asyncio.create_task(work.task.cancel(soft_grace=0.2, reason="superseded"))
        try:
            await asyncio.sleep(DEADLINE)
        except asyncio.CancelledError as cancelled:
            seen.append((str(cancelled), work.stopping.is_set(), cancelling.done()))
            return WorkResult.cancelled("as far as it got")
        raise AssertionError("not cancelled")

    task = await client.host(work_on, grace=DEADLINE)
    assert seen == [("superseded", True, False)]
    assert (task.state, task.result.text) == (TaskState.CANCELLED, "as far as it got")
    assert not task.stop.forced


async def test_a_body_that_ends_with_its_cancellation_has_no_text(client: Client) -> None:
    """P2."""

    async def work_on(work: Work) -> None:
        await work.task.cancel(soft_grace=0)

    task = await client.host(work_on, grace=DEADLINE)
    assert (task.state, task.result.status) == (TaskState.CANCELLED, WorkerStatus.CANCELLED)
    assert (task.result.text, task.stop.forced) == ("", False)


async def test_a_body_that_does_not_stop_in_time_loses_its_task(client: Client) -> None:
    """P4."""
    late = []

    async def work_on(work: Work) -> str:
        try:
            await work.task.cancel(soft_grace=0, grace=0.2)
            await asyncio.sleep(DEADLINE)
        except asyncio.CancelledError:
            late.append(await work.ended())
        return "too late"

    task = await client.host(work_on)
    assert late == [task]
    assert (task.state, task.stop.forced) == (TaskState.CANCELLED, True)
    assert not task.HasField("result")


async def test_cancelling_the_caller_cancels_the_body_and_the_task(client: Client) -> None:
    """P2, F13."""
    begun = asyncio.Event()

    async def stops(_: Work) -> None:
        begun.set()
        await asyncio.sleep(DEADLINE)

    async def returns(work: Work) -> WorkResult:
        try:
            await stops(work)
        except asyncio.CancelledError:
            return WorkResult.ok("what there was")
        raise AssertionError("not cancelled")

    async def fails(work: Work) -> None:
        try:
            await stops(work)
        finally:
            raise LookupError("no clean end")

    ends = []
    for body in (stops, returns, fails):
        begun.clear()
        hosting = asyncio.create_task(client.host(body, session="s1"))
        await begun.wait()
        (live,) = [task async for task in client.session("s1").list()]
        hosting.cancel("a newer commit was pushed")
        await asyncio.wait([hosting])
        assert hosting.cancelled()
        ended = await client.task(live).wait(timeout=DEADLINE)
        assert ended.stop.reason == "a newer commit was pushed"
        ends.append((TaskState(ended.state).name, ended.result.text))
    assert ends == [
        ("CANCELLED", "a newer commit was pushed"),
        ("CANCELLED", "what there was"),
        ("CANCELLED", "no clean end"),
    ]


async def test_cancelling_the_caller_of_a_queued_task_keeps_the_reason(client: Client) -> None:
    """F13."""
    async with await client.register(queue="q"):
        hosting = asyncio.create_task(client.host(never, queue="q"))
        (live,) = await queued(client, 1)
        hosting.cancel("not needed any more")
        await asyncio.wait([hosting])
        assert hosting.cancelled()
        ended = await client.task(live).wait(timeout=DEADLINE)
    assert (ended.state, ended.stop.reason) == (TaskState.CANCELLED, "not needed any more")


async def never(_: Work) -> None:
    raise AssertionError("the body of a task that was stopped before it began")


async def test_a_caller_that_is_cancelled_while_it_registers_leaves_no_task(
    client: Client, daemon: Daemon
) -> None:
    """F13."""
    daemon.kill()
    hosting = asyncio.create_task(client.host(lambda _: asyncio.sleep(0, "never"), session="s1"))
    await asyncio.sleep(0)
    hosting.cancel("never mind")
    await asyncio.to_thread(daemon.start)
    await asyncio.wait([hosting])
    assert hosting.cancelled()
    (task,) = [task async for task in client.session("s1").list(include_finished=True)]
    assert (task.state, task.stop.reason) == (TaskState.CANCELLED, "never mind")


async def test_a_queued_body_runs_once_it_is_admitted(client: Client) -> None:
    """X1."""
    order = []

    async def second(_: Work) -> None:
        order.append("second")

    first = await client.register(queue="q")
    hosting = asyncio.create_task(client.host(second, queue="q", name="second"))
    cancelled = asyncio.create_task(client.host(second, queue="q", name="cancelled"))
    await queued(client, 2)
    (third,) = [task async for task in client.list(heeler.Filter(name="cancelled"))]
    await client.cancel(third)
    assert (await cancelled).state == TaskState.CANCELLED
    order.append("first")
    await first.finish()
    assert (await hosting).state == TaskState.COMPLETED
    assert order == ["first", "second"]


async def test_a_body_whose_task_ended_in_the_queue_does_not_run(client: Client) -> None:
    """X1."""
    bodies = []

    async def body(_: Work) -> None:
        bodies.append("ran")

    async with await client.register(queue="q"):
        waiting = await client.register(queue="q", request_id="r1")
        await client.cancel(waiting.task)
        again = await client.host(body, queue="q", request_id="r1")
    assert again.state == TaskState.CANCELLED
    assert bodies == []


async def queued(client: Client, count: int) -> list[str]:
    """Waits until so many tasks are in a queue, and returns their ids."""
    ids: list[str] = []
    async with client.watch_events(after=0, types=["created"]) as watch:
        while len(ids) < count:
            item = await asyncio.wait_for(anext(watch), DEADLINE)
            if isinstance(item, heeler.TaskEvent) and item.task.state == TaskState.QUEUED:
                ids.append(item.task.id)
    return ids


async def test_a_body_that_is_replaced_is_cancelled_and_told(client: Client) -> None:
    """P3."""
    begun, cancelled = asyncio.Event(), []

    async def first(_: Work) -> None:
        begun.set()
        try:
            await asyncio.sleep(DEADLINE)
        finally:
            cancelled.append(True)

    hosting = asyncio.create_task(client.host(first, request_id="r1"))
    await begun.wait()
    second = await client.register(request_id="r1")
    with pytest.raises(heeler.WorkerReplacedError):
        await hosting
    assert cancelled == [True]
    assert (await second.finish("by the second")).result.text == "by the second"


async def test_a_worker_whose_lease_lapsed_finds_its_task_lost(
    client: Client, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P3."""
    monkeypatch.setattr("heeler._work.stream._SIGNS_PER_LEASE", 0.001)

    async def silent(work: Work) -> str:
        await asyncio.sleep(DEADLINE)
        return "never"

    task = await asyncio.wait_for(client.host(silent, lease=1), DEADLINE)
    assert (task.state, task.end_reason) == (TaskState.LOST, EndReason.WORKER_LOST)
    assert not task.HasField("result")


async def test_a_silent_body_is_stale_although_its_lease_is_kept(client: Client) -> None:
    """T4."""

    async def silent(work: Work) -> str:
        async with client.watch_events(after=0, types=["stale", "active"]) as watch:
            types = []
            async for item in watch:
                if isinstance(item, heeler.TaskEvent):
                    types.append(heeler.TaskEventType(item.type).name)
                    await work.heartbeat()
                if len(types) == 2:
                    return " ".join(types)
        raise AssertionError("a watch ends with an error")

    task = await asyncio.wait_for(client.host(silent, lease=1, stale_after=1.5), DEADLINE)
    assert task.result.text == "STALE ACTIVE"


async def test_a_closed_client_ends_its_bodies(daemon: Daemon) -> None:
    client = await heeler.connect(daemon.address)
    begun = asyncio.Event()

    async def body(_: Work) -> None:
        begun.set()
        await asyncio.sleep(DEADLINE)

    hosting = asyncio.create_task(client.host(body))
    await begun.wait()
    await client.close()
    with pytest.raises(heeler.ClientClosedError):
        await asyncio.wait_for(hosting, DEADLINE)
