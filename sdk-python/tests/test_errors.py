"""Bad input and bad luck: each has an exception that says what was wrong, and nothing was done."""

import asyncio
import os
import socket
from pathlib import Path

import grpc
import pytest

import heeler
from harness import Daemon
from heeler import Client, Filter
from heeler.v1 import WaitRequest, WaitResponse


async def test_no_daemon_is_an_error_that_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(heeler.NotRunning) as error:
        await heeler.connect(f"unix:{tmp_path}/s.sock")
    start = f"heeler serve --listen unix:{tmp_path}/s.sock"
    assert (
        str(error.value) == f"no daemon answers at unix:{tmp_path}/s.sock: start one with `{start}`"
    )
    assert isinstance(error.value, ConnectionError)


async def test_a_dead_socket_is_a_daemon_that_does_not_run(daemon: Daemon) -> None:
    daemon.kill()
    assert daemon.socket.exists()
    with pytest.raises(heeler.NotRunning):
        async with heeler.connect(daemon.address):
            pass


async def test_a_socket_that_cannot_be_opened_is_unreachable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(heeler.Unreachable, match="Not a directory"):
        await heeler.connect(f"unix:{tmp_path}/file/s.sock")


async def test_a_stranger_is_told_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.bind(str(tmp_path / "s.sock"))
        if os.geteuid() == 0:
            # The kernel tells who a listener was when it began to listen.
            os.seteuid(65534)
        try:
            stranger.listen()
        finally:
            os.seteuid(os.getuid())
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        with pytest.raises(heeler.Unreachable, match="not user 12345"):
            await heeler.connect(f"unix:{tmp_path}/s.sock")


async def test_a_socket_path_that_is_too_long_is_refused_before_anything_is_opened() -> None:
    with pytest.raises(heeler.AddressError, match="at most 107 fit"):
        await heeler.connect("unix:/" + "x" * 200)


async def test_the_environment_says_where_the_daemon_is(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEELER_ADDR", daemon.address)
    async with heeler.connect() as client:
        await client.list_page()
        assert str(client.address) == daemon.address
    monkeypatch.setenv("HEELER_ADDR", "nowhere")
    with pytest.raises(heeler.AddressError, match="nowhere"):
        await heeler.connect()


async def test_a_path_with_odd_characters_is_found() -> None:
    daemon = Daemon("a b%20#?ä.sock")
    try:
        daemon.start()
        async with heeler.connect(daemon.address) as client:
            await client.list_page()
    finally:
        daemon.clean_up()


async def test_an_unknown_id_is_not_found(client: Client) -> None:
    """C9."""
    task = client.task("shell-aaaaaaaaaa")
    calls = [task.wait(), task.cancel(), task.inspect(), task.remove(), anext(task.output())]
    for call in calls:
        with pytest.raises(heeler.TaskNotFound) as refused:
            await call
        assert refused.value.metadata == {"task_id": "shell-aaaaaaaaaa"}
        assert refused.value.code is grpc.StatusCode.NOT_FOUND


async def test_a_field_that_cannot_be_used_is_named_and_nothing_is_made(client: Client) -> None:
    """S2."""
    with pytest.raises(heeler.InvalidField) as refused:
        await client.spawn("true", timeout=-1)
    assert [bad.field for bad in refused.value.fields] == ["timeout"]
    for call in (client.spawn([]), client.cancel(), client.wait(), client.remove()):
        with pytest.raises(heeler.InvalidField) as refused:
            await call
        assert refused.value.fields[0].field
    assert [task async for task in client.list(include_finished=True)] == []


async def test_arguments_that_contradict_each_other_are_refused_here(client: Client) -> None:
    with pytest.raises(ValueError, match="only one of task and session"):
        await client.cancel("shell-a", session="s")
    with pytest.raises(ValueError, match="only one of offset and tail_bytes"):
        await client.read_output("shell-a", offset=0, tail_bytes=1)
    with pytest.raises(ValueError, match="only one of tasks and finished"):
        await client.remove("shell-a", finished=Filter())
    with pytest.raises(ValueError, match="shell_program"):
        await client.spawn(["true"], shell_program="/bin/sh")


async def test_what_cannot_be_started_says_why(client: Client) -> None:
    """S3, S4."""
    with pytest.raises(heeler.WorkingDirectoryUnusable) as refused:
        await client.spawn("true", cwd="/nowhere")
    assert refused.value.metadata["path"] == "/nowhere"
    with pytest.raises(heeler.ProgramUnusable) as unusable:
        await client.spawn(["/nowhere/program"])
    assert unusable.value.metadata["program"] == "/nowhere/program"
    with pytest.raises(heeler.ParentNotLive):
        await client.spawn("true", parent="shell-aaaaaaaaaa")


async def test_a_full_daemon_says_how_full_it_is() -> None:
    """S11."""
    daemon = Daemon("s.sock", "--max-tasks", "1")
    try:
        daemon.start()
        async with heeler.connect(daemon.address) as client:
            await client.spawn("sleep 100")
            with pytest.raises(heeler.TaskLimitReached) as refused:
                await client.spawn("sleep 100")
            assert refused.value.metadata == {"running": "1", "max": "1"}
    finally:
        daemon.clean_up()


async def test_a_message_that_is_too_large_is_refused_and_the_client_goes_on(
    client: Client,
) -> None:
    """N3."""
    labels = {str(n): "x" * 100_000 for n in range(60)}
    with pytest.raises(heeler.Refused) as refused:
        await client.spawn("true", labels=labels)
    assert isinstance(refused.value, heeler.RequestTooLarge)
    assert int(refused.value.metadata["max"]) > 0
    assert refused.value.code is grpc.StatusCode.OUT_OF_RANGE
    assert [task async for task in client.list(include_finished=True)] == []


async def test_calls_wait_for_a_daemon_that_restarts(client: Client, daemon: Daemon) -> None:
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
    with pytest.raises(heeler.StillRunning):
        await asyncio.wait_for(waiting, 20)


async def test_what_is_left_of_a_timeout_is_asked_for_after_a_break(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []
    wait = client.stub.Wait

    async def breaking(request: WaitRequest) -> WaitResponse:
        asked.append(request.timeout.ToTimedelta().total_seconds())
        if len(asked) < 3:
            raise grpc.aio.AioRpcError(
                grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), "closed"
            )
        return await wait(request)

    monkeypatch.setattr(client.stub, "Wait", breaking)
    task = await client.spawn("true")
    await task.wait(timeout=60)
    assert 60 >= asked[0] > asked[1] > asked[2] > 0


async def test_calls_fail_at_once_if_they_may_not_be_repeated(daemon: Daemon) -> None:
    async with heeler.connect(daemon.address, retry_for=0) as client:
        await client.list_page()
        daemon.kill()
        with pytest.raises(heeler.Unreached):
            await client.list_page()
        with pytest.raises(heeler.NotRunning, match="heeler serve"):
            await client.list_page()


async def test_a_connection_that_breaks_in_mid_call_may_have_been_heard(daemon: Daemon) -> None:
    async with heeler.connect(daemon.address, retry_for=0) as client:
        task = await client.spawn("sleep 100")
        waiting = asyncio.create_task(task.wait())
        for _ in range(2):
            # The second is sent after the wait, on the same connection: its answer says that both
            # have arrived.
            await task.snapshot()
        daemon.kill()
        with pytest.raises(heeler.Disconnected):
            await waiting


async def test_a_closed_client_says_so(daemon: Daemon) -> None:
    client = await heeler.connect(daemon.address)
    task = await client.spawn("sleep 100")
    waiting = asyncio.create_task(task.wait())
    await task.snapshot()
    await client.close()
    for call in (waiting, task.wait(), anext(client.watch())):
        with pytest.raises(heeler.ClientClosed):
            await call


async def test_somebody_who_is_no_daemon_is_waited_for_in_vain(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.bind(str(tmp_path / "s.sock"))
        stranger.listen()
        async with heeler.connect(f"unix:{tmp_path}/s.sock") as client:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.list_page(), 0.2)
