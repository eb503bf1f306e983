"""A worker across kills of the daemon: nothing is lost, nothing is repeated."""

import asyncio
import signal

import heeler
from harness.daemon import DEADLINE, Daemon
from heeler import Client, TaskState, Work, WorkResult


async def test_progress_and_messages_survive_a_kill_once_and_in_order(
    client: Client, daemon: Daemon
) -> None:
    """P3, P8, R1."""

    async def send(work: Work, number: int) -> None:
        await client.send_message(work.task, f"m{number}", message_id=f"id{number}")

    async def body(work: Work) -> str:
        got = []
        messages = work.messages()
        await work.note("one")
        await send(work, 1)
        got.append((await anext(messages)).text)
        await send(work, 2)
        daemon.kill()
        for text in ("two", "three", "four"):
            await work.note(text)
        await asyncio.to_thread(daemon.start)
        await send(work, 3)
        while len(got) < 3:
            got.append((await asyncio.wait_for(anext(messages), DEADLINE)).text)
        await asyncio.to_thread(daemon.restart)
        await send(work, 4)
        got.append((await asyncio.wait_for(anext(messages), DEADLINE)).text)
        return " ".join(got)

    task = await client.host(body)
    assert (task.state, task.result.text) == (TaskState.COMPLETED, "m1 m2 m3 m4")
    assert task.progress.block_count == 4
    blocks = (await client.inspect(task)).blocks
    assert [block.text for block in blocks] == ["one", "two", "three", "four"]


async def test_many_kills_lose_and_repeat_no_report(client: Client, daemon: Daemon) -> None:
    """P3, R1."""

    async def body(work: Work) -> str:
        async def report() -> None:
            for number in range(400):
                await work.report(blocks=[heeler.Block(text=str(number))], percent=number // 4)
                if number % 20 == 0:
                    await asyncio.sleep(0.01)

        reporting = asyncio.create_task(report())
        for _ in range(3):
            await asyncio.to_thread(daemon.restart)
        await reporting
        return "done"

    task = await client.host(body, lease=20)
    assert (task.state, task.progress.block_count) == (TaskState.COMPLETED, 400)
    blocks = (await client.inspect(task, block_count=64)).blocks
    assert [block.text for block in blocks] == [str(number) for number in range(336, 400)]


async def test_a_result_is_delivered_to_the_next_daemon(client: Client, daemon: Daemon) -> None:
    """P7, R1."""
    work = await client.register()
    daemon.kill()
    finishing = asyncio.create_task(work.finish(WorkResult.ok("done", b"data")))
    await asyncio.to_thread(daemon.start)
    task = await asyncio.wait_for(finishing, DEADLINE)
    assert (task.state, task.result.text) == (TaskState.COMPLETED, "done")


async def test_a_cancel_that_the_worker_missed_is_told_by_the_next_daemon(
    client: Client, daemon: Daemon
) -> None:
    """P2, C18, R1."""

    async def body(work: Work) -> WorkResult:
        await work.task.cancel(wait=False, reason="enough", soft_grace=DEADLINE)
        daemon.kill()
        await asyncio.to_thread(daemon.start)
        await work.stopping.wait()
        request = work.cancel_request
        return WorkResult.cancelled("" if request is None else request.reason)

    task = await asyncio.wait_for(client.host(body), 2 * DEADLINE)
    assert (task.state, task.result.text) == (TaskState.CANCELLED, "enough")


async def test_a_worker_registers_while_the_daemon_starts(client: Client, daemon: Daemon) -> None:
    """R1."""
    daemon.kill()
    hosting = asyncio.create_task(client.host(lambda _: asyncio.sleep(0, "done"), session="s1"))
    await asyncio.to_thread(daemon.start)
    assert (await asyncio.wait_for(hosting, DEADLINE)).result.text == "done"
    tasks = client.session("s1").list(include_finished=True)
    assert len([task async for task in tasks]) == 1


async def test_a_terminated_daemon_is_waited_for_as_well(client: Client, daemon: Daemon) -> None:
    """R7."""

    async def body(work: Work) -> str:
        await asyncio.to_thread(daemon.restart, signal.SIGTERM)
        await work.note("after")
        return "done"

    task = await client.host(body)
    assert (task.result.text, task.progress.block_count) == ("done", 1)
