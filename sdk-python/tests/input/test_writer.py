"""The writer to a task's input, with a daemon that takes a few bytes at a time and breaks."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import cast

import grpc
import pytest

import heeler
from heeler import Address, Client, InputWriter
from heeler._streams import input as input_module
from heeler.v1 import WriteInputRequest, WriteInputResponse


class Pipe:
    """The input of a task, as the daemon keeps it."""

    def __init__(self, chances: random.Random) -> None:
        self.chances = chances
        self.given = bytearray()
        self.closed = False
        self.largest = 0
        self.room = asyncio.Event()
        self.room.set()

    async def write(self, request: WriteInputRequest) -> WriteInputResponse:
        """Takes some of the bytes. The answer, or the request, may get lost."""
        await self.room.wait()
        if self.chances.random() < 0.2:
            raise broken()
        skipped = len(self.given) - request.offset if request.HasField("offset") else 0
        assert skipped >= 0, "a gap"
        new = request.data[skipped:][: self.chances.randrange(4)]
        self.given += new
        self.largest = max(self.largest, len(request.data))
        taken = min(skipped + len(new), len(request.data))
        self.closed |= request.close and taken == len(request.data)
        if self.chances.random() < 0.2:
            raise broken()
        return WriteInputResponse(offset=len(self.given), closed=self.closed, taken_bytes=taken)


def broken() -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(
        grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), "closed"
    )


def writer_to(write: Callable[[WriteInputRequest], Awaitable[WriteInputResponse]]) -> InputWriter:
    connection = SimpleNamespace(
        raw=SimpleNamespace(WriteInput=write),
        closed=False,
        address=Address.parse("unix:/none"),
    )
    return InputWriter(
        cast(Client, connection), "shell-a", writer_id=None, take_over=False, give_up_after=None
    )


@pytest.mark.parametrize("seed", range(5))
async def test_every_byte_is_given_once_and_in_order(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I1, I2."""
    monkeypatch.setattr(input_module, "_CALL", 7)
    monkeypatch.setattr("heeler._calls.backoff.FIRST", 0.0)
    chances = random.Random(seed)
    pipe = Pipe(chances)
    written = chances.randbytes(200)
    async with writer_to(pipe.write) as writer:
        at = 0
        while at < len(written):
            piece = written[at : at + chances.randrange(1, 20)]
            at += len(piece)
            writer.write(piece)
            await writer.drain()
            if chances.random() < 0.2:
                await writer.flush()
                assert bytes(pipe.given) == written[:at]
    assert (bytes(pipe.given), pipe.closed) == (written, True)
    assert pipe.largest <= 7


async def test_bytes_that_another_one_writes_meanwhile_are_not_taken_for_ours() -> None:
    """I6."""
    pipe = Pipe(random.Random(4))
    pipe.chances.random = lambda: 1.0  # type: ignore[method-assign]

    async def write(request: WriteInputRequest) -> WriteInputResponse:
        answer = await pipe.write(request)
        if not request.writer_id:
            # It is free, so another one may write as soon as it has answered.
            pipe.given += b"theirs"
        return answer

    async with writer_to(write) as writer:
        writer.write(b"mine")
    assert bytes(pipe.given) == b"theirsmine"


async def test_drain_waits_while_the_task_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """I3."""
    monkeypatch.setattr(input_module, "_HIGH_WATER", 10)
    pipe = Pipe(random.Random(1))
    pipe.room.clear()
    writer = writer_to(pipe.write)
    writer.write(b"x" * 10)
    await writer.drain()
    writer.writelines([b"y", b"z"])
    draining = asyncio.ensure_future(writer.drain())
    await asyncio.sleep(0.01)
    assert not draining.done()
    pipe.room.set()
    await draining
    await writer.flush()
    assert bytes(pipe.given) == b"x" * 10 + b"yz"
    assert not pipe.closed


async def test_a_writer_is_used_as_an_asyncio_stream() -> None:
    pipe = Pipe(random.Random(2))
    writer = writer_to(pipe.write)
    assert writer.can_write_eof()
    assert not writer.is_closing()
    writer.write(memoryview(b"abc"))
    writer.write_eof()
    assert writer.is_closing()
    with pytest.raises(RuntimeError, match="write_eof"):
        writer.write(b"d")
    writer.close()
    await writer.wait_closed()
    assert (bytes(pipe.given), pipe.closed) == (b"abc", True)


async def test_an_exception_in_the_block_leaves_the_input_open() -> None:
    pipe = Pipe(random.Random(3))
    writer = writer_to(pipe.write)

    async def fail() -> None:
        async with writer:
            writer.write(b"half")
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    await writer.flush()
    assert (bytes(pipe.given), pipe.closed) == (b"half", False)


async def test_a_broken_writer_says_so_everywhere() -> None:
    """I7."""

    async def refuse(_: WriteInputRequest) -> WriteInputResponse:
        raise grpc.aio.AioRpcError(
            grpc.StatusCode.PERMISSION_DENIED, grpc.aio.Metadata(), grpc.aio.Metadata(), "no"
        )

    writer = writer_to(refuse)
    writer.write(b"x" * 1_000_000)
    for wait in (writer.drain, writer.flush, writer.wait_closed):
        with pytest.raises(heeler.RefusedError):
            await wait()
    with pytest.raises(heeler.RefusedError):
        writer.write(b"y")
    assert writer.is_closing()
    writer.close()
