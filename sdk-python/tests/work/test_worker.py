"""Workers that register, join, leave and take over."""

import asyncio
import gc
from collections.abc import AsyncIterator

import pytest

import heeler
from harness.daemon import DEADLINE, Daemon
from heeler import Client, EndReason, TaskState, WorkerStatus, WorkResult
from heeler.v1 import WorkJoin, WorkRegister, WorkRequest


async def test_the_lease_is_kept_by_itself(client: Client) -> None:
    """P3."""
    work = await client.register(lease=1)
    with pytest.raises(heeler.TaskStillRunningError):
        await work.task.wait(timeout=3)
    assert (await work.finish()).state == TaskState.COMPLETED


async def test_a_worker_that_leaves_ends_its_hosted_task(client: Client) -> None:
    """P3."""
    async with await client.register() as work:
        pass
    assert (await work.task.get()).state == TaskState.CANCELLED
    with pytest.raises(LookupError):
        async with await client.register() as failed:
            raise LookupError("no room")
    ended = await failed.task.get()
    assert (ended.end_reason, ended.result.text) == (EndReason.WORKER_FAILED, "no room")


async def test_a_worker_that_is_dropped_ends_its_hosted_task(client: Client) -> None:
    """P3."""
    work = await client.register()
    task = work.task
    del work
    gc.collect()
    ended = await task.wait(timeout=DEADLINE)
    assert (ended.state, ended.result.status) == (TaskState.CANCELLED, WorkerStatus.CANCELLED)


async def test_a_worker_that_leaves_a_process_leaves_it_alone(client: Client) -> None:
    task = await client.spawn("sleep 1000", kind="agent")
    async with await client.join(task) as work:
        await work.note("was here")
    inspected = await client.inspect(task)
    assert [block.text for block in inspected.blocks] == ["was here"]
    assert (inspected.task.state, inspected.worker.connected) == (TaskState.RUNNING, False)
    with pytest.raises(heeler.WorkClosedError, match="has left agent-"):
        await work.ended()
    with pytest.raises(heeler.WorkClosedError):
        await work.deliver("too late")
    await work.note("no effect")
    await work.heartbeat()
    assert await work.message() is None


async def test_a_second_worker_is_refused_unless_it_takes_over(client: Client) -> None:
    """P3."""
    first = await client.register()
    with pytest.raises(heeler.WorkerConnectedError):
        await client.join(first.task)
    second = await client.join(first.task, take_over=True)
    await asyncio.wait_for(first.cancelled.wait(), DEADLINE)
    with pytest.raises(heeler.WorkerReplacedError):
        await first.finish("by the first")
    assert (await second.finish("by the second")).result.text == "by the second"


async def test_joining_a_finished_task_shows_its_end(client: Client) -> None:
    """P7, P3."""
    task = await client.spawn("exit 3")
    ended = await task.wait()
    work = await client.join(task)
    assert await work.ended() == ended
    assert work.cancelled.is_set()
    await work.deliver("too late")
    assert await work.message() is None


async def test_messages_arrive_in_order_with_their_sender(client: Client) -> None:
    """P8."""
    work = await client.register()
    for number in range(1, 31):
        await client.send_message(work.task, f"m{number}", actor="parent")
    got = []
    async for message in work.messages():
        got.append(message)
        if len(got) == 30:
            break
    assert [(one.number, one.text) for one in got] == [(n, f"m{n}") for n in range(1, 31)]
    assert {one.sender.name for one in got} == {"parent"}
    # A step that is cancelled loses nothing.
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(work.message(), 0.05)
    await client.send_message(work.task, "last")
    assert (await anext(work.messages())).text == "last"
    await work.finish()
    assert [one async for one in work.messages()] == []


async def test_messages_that_were_received_are_not_for_the_next_worker(client: Client) -> None:
    """P8."""
    task = await client.spawn("sleep 1000")
    for text in ("one", "two"):
        await client.send_message(task, text)
    async with await client.join(task) as first:
        assert (await anext(first.messages())).text == "one"
    async with await client.join(task) as second:
        assert (await anext(second.messages())).text == "two"


async def test_refusals_are_typed_and_name_the_option(client: Client) -> None:
    """S2."""
    with pytest.raises(heeler.TaskNotFoundError):
        await client.join("hosted-aaaaaaaaaa")
    for lease in (0, -1, 365 * 86400):
        with pytest.raises(heeler.InvalidFieldError) as refused:
            await client.register(lease=lease)
        (field,) = refused.value.fields
        assert (field.field, field.option) == ("register.lease", "lease")
    with pytest.raises(heeler.InvalidFieldError, match=r"grace \(register\.spec\.stop\.grace\)"):
        await client.host(lambda _: asyncio.sleep(0, ""), grace=-1)
    with pytest.raises(TypeError, match=r"host\(\) got an unexpected keyword argument 'env'"):
        await client.register(env={})  # type: ignore[call-arg]
    assert await client.current() is None


async def test_a_bad_report_is_refused_and_the_worker_goes_on(client: Client) -> None:
    """P1."""
    work = await client.register()
    with pytest.raises(ValueError, match="percent"):
        await work.report(percent=101)
    with pytest.raises(ValueError, match="100000 bytes"):
        await work.deliver("x" * 100_000)
    for text in ("", "\0\ud800\x1b[31m", "é" * 1_000_000):
        await work.note(text)
    await work.report(blocks=[heeler.Block(text="x" * 10_000, name="n" * 500)] * 3000)
    task = await work.finish("well")
    assert (task.result.text, task.progress.block_count) == ("well", 3003)
    await work.note("after the end")
    assert await work.finish("again") == task


async def test_two_results_of_one_process_are_refused(client: Client) -> None:
    """P7."""
    task = await client.spawn("sleep 1000")
    work = await client.join(task)
    await work.deliver("first")
    await work.deliver("first")
    with pytest.raises(heeler.RefusedError):
        await work.deliver(WorkResult.failed("second"))
    assert (await task.get()).result.text == "first"


async def test_a_worker_that_floods_waits_and_loses_nothing(client: Client) -> None:
    """P9."""
    work = await client.register()
    await asyncio.gather(*(work.note(str(number)) for number in range(2000)))
    assert (await work.finish()).progress.block_count == 2000


async def test_the_raw_stream_is_repeated_while_the_daemon_starts(
    client: Client, daemon: Daemon
) -> None:
    """R1."""

    async def requests(*given: WorkRequest) -> AsyncIterator[WorkRequest]:
        for request in given:
            yield request

    daemon.kill()
    register = WorkRegister(request_id="r1", spec=heeler.v1.TaskSpec())
    result = WorkRequest(sequence=1, result=WorkResult.ok("done").to_message())
    responses = client.work(requests(WorkRequest(register=register), result))
    beginning = asyncio.ensure_future(anext(responses))
    await asyncio.to_thread(daemon.start)
    joined = (await asyncio.wait_for(beginning, DEADLINE)).joined
    kinds = [response.WhichOneof("item") async for response in responses]
    assert kinds[-1] == "ended"
    again = client.work(requests(WorkRequest(join=WorkJoin(task_id=joined.task.id))))
    assert [one.WhichOneof("item") async for one in again] == ["joined", "ended"]
