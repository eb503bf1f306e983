"""A program inside a task that joins its own task."""

import sys
import textwrap
from collections.abc import AsyncIterator, Callable
from datetime import datetime

import heeler
from harness.daemon import DEADLINE, Daemon
from heeler import Client, Line, Task, TaskState
from heeler._options.time import to_datetime

ASYNCIO = """
    import asyncio
    import heeler


    async def main() -> None:
        async with heeler.connect() as client:
            work = await client.current()
            async with work:
                print("joined", work.task.id, flush=True)
                await work.report(intent="listens")

                async def listen() -> None:
                    async for message in work.messages():
                        print("message", message.number, message.text, flush=True)

                listening = asyncio.create_task(listen())
                await work.stopping.wait()
                print("stopping", work.cancel_request.reason, flush=True)
                listening.cancel()
                await work.deliver(heeler.WorkResult.cancelled("as far as it got"))


    asyncio.run(main())
"""
BLOCKING = """
    import threading
    import heeler.sync


    with heeler.sync.connect() as client, client.current() as work:
        print("joined", work.task.id, flush=True)
        work.report(intent="listens")

        def listen() -> None:
            for message in work.messages():
                print("message", message.number, message.text, flush=True)

        threading.Thread(target=listen, daemon=True).start()
        work.stopping.wait()
        print("stopping", work.cancel_request.reason, flush=True)
        work.deliver(heeler.WorkResult.cancelled("as far as it got"))
"""


async def test_an_agent_hears_messages_and_a_cancel_and_reports(client: Client) -> None:
    """P6, P7, P8, C18."""
    await hears_and_reports(client, ASYNCIO, restart=None)


async def test_a_blocking_agent_hears_messages_and_a_cancel_and_reports(client: Client) -> None:
    """P6, P7, P8, C18."""
    await hears_and_reports(client, BLOCKING, restart=None)


async def test_an_agent_goes_on_across_a_kill_of_the_daemon(client: Client, daemon: Daemon) -> None:
    """P6, P8, R1."""
    await hears_and_reports(client, ASYNCIO, restart=daemon.restart)


async def hears_and_reports(
    client: Client, program: str, restart: Callable[[], None] | None
) -> None:
    task = await client.spawn([sys.executable, "-c", textwrap.dedent(program)], kind="agent")
    lines = task.lines()
    await line(lines, f"joined {task.id}")
    delays = []
    for number in range(1, 11):
        if restart is not None and number == 5:
            restart()
        sent = datetime.now().timestamp()
        await client.send_message(task, f"m{number}", message_id=f"id{number}")
        await line(lines, f"message {number} m{number}")
        delays.append(datetime.now().timestamp() - sent)
    # The machine may be busy with other tests: not every message can be on time.
    assert sorted(delays)[2] < 0.05, f"messages arrived after {delays} s"
    assert (await task.get()).progress.intent == "listens"
    ended = (await task.cancel(reason="enough", soft_grace=DEADLINE)).task
    await line(lines, "stopping enough")
    assert (ended.state, ended.result.text) == (TaskState.CANCELLED, "as far as it got")
    assert ended.stop.proof.HasField("proven")
    assert await heard_after(task, ended) < 5


async def line(lines: AsyncIterator[Line], expected: str) -> None:
    """Reads the next line of the output."""
    assert (await anext(lines)).text == expected


async def heard_after(task: Task, ended: heeler.BackgroundTask) -> float:
    """Returns the seconds between the request to stop and the line that the worker wrote."""
    times = [chunk.read_time async for chunk in task.output() if b"stopping" in chunk.data]
    return (times[0] - to_datetime(ended.stop.request_time)).total_seconds()
