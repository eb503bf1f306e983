"""Calls while the daemon is away: they are repeated if that is safe."""

import asyncio

import grpc
import pytest

import heeler
from harness.daemon import Daemon
from heeler import Client, Filter
from heeler.v1 import WaitRequest, WaitResponse


async def test_calls_are_repeated_while_the_daemon_restarts(client: Client, daemon: Daemon) -> None:
    """R1."""
    task = await client.spawn("sleep 0.2; exit 3")
    waiting = asyncio.create_task(task.wait())
    await asyncio.to_thread(daemon.restart)
    assert heeler.outcome(await waiting) == heeler.Exited(3)

    daemon.kill()
    spawning = asyncio.create_task(client.spawn("true", session="s"))
    await asyncio.to_thread(daemon.start)
    await (await spawning).wait()
    assert (
        len([task async for task in client.list(Filter(session="s"), include_finished=True)]) == 1
    )


async def test_the_timeout_of_a_wait_counts_across_restarts(client: Client, daemon: Daemon) -> None:
    task = await client.spawn("sleep 100")
    waiting = asyncio.create_task(task.wait(timeout=1))
    await asyncio.to_thread(daemon.restart)
    with pytest.raises(heeler.TaskStillRunningError):
        await asyncio.wait_for(waiting, 20)


async def test_a_repeated_wait_has_the_rest_of_the_timeout(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []
    wait = client.raw.Wait

    async def breaking(request: WaitRequest) -> WaitResponse:
        asked.append(request.timeout.ToTimedelta().total_seconds())
        if len(asked) < 3:
            raise grpc.aio.AioRpcError(
                grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), "closed"
            )
        return await wait(request)

    monkeypatch.setattr(client.raw, "Wait", breaking)
    task = await client.spawn("true")
    await task.wait(timeout=60)
    assert 60 >= asked[0] > asked[1] > asked[2] > 0


async def test_calls_fail_at_once_with_a_retry_time_of_zero(daemon: Daemon) -> None:
    async with heeler.connect(daemon.address, retry_for=0) as client:
        await client.list_page()
        daemon.kill()
        with pytest.raises(heeler.DaemonConnectionError):
            await client.list_page()
        with pytest.raises(heeler.DaemonNotRunningError, match="heeler serve"):
            await client.list_page()


async def test_a_connection_that_breaks_during_a_call_is_a_disconnect(daemon: Daemon) -> None:
    async with heeler.connect(daemon.address, retry_for=0) as client:
        task = await client.spawn("sleep 100")
        waiting = asyncio.create_task(task.wait())
        for _ in range(2):
            # It is sent after the wait, on the same connection: its answer shows that the wait has
            # arrived.
            await task.get()
        daemon.kill()
        with pytest.raises(heeler.DisconnectedError):
            await waiting


async def test_calls_on_a_closed_client_fail(daemon: Daemon) -> None:
    client = await heeler.connect(daemon.address)
    task = await client.spawn("sleep 100")
    waiting = asyncio.create_task(task.wait())
    await task.get()
    await client.close()
    for call in (waiting, task.wait(), anext(client.watch_events())):
        with pytest.raises(heeler.ClientClosedError):
            await call
