"""Input to real tasks, and their terminals."""

import asyncio
import hashlib
import random

import pytest

import heeler
from harness.daemon import DEADLINE, Daemon
from heeler import Client, Exited, TaskState


async def test_without_the_option_stdin_is_at_its_end(client: Client) -> None:
    """I1, I7."""
    task = await client.spawn("cat; sleep 1000")
    writer = task.input()
    writer.write(b"lost")
    with pytest.raises(heeler.InputMissingError):
        await writer.flush()
    with pytest.raises(heeler.TerminalMissingError):
        await task.resize(80, 24)


async def test_what_is_written_is_read_in_order_to_its_end(client: Client) -> None:
    """I1."""
    data = random.Random(1).randbytes(3_000_000)
    task = await client.spawn("sha256sum", input=True)
    async with task.input() as stdin:
        for at in range(0, len(data), 70_001):
            stdin.write(data[at : at + 70_001])
            await stdin.drain()
    assert heeler.outcome(await task.wait(timeout=DEADLINE)) == Exited(0)
    (line,) = [line.text async for line in task.lines()]
    assert line.split()[0] == hashlib.sha256(data).hexdigest()


async def test_a_writer_goes_on_across_kills_of_the_daemon(client: Client, daemon: Daemon) -> None:
    """I2, R1."""
    task = await client.spawn("sha256sum", input=True)
    digest = hashlib.sha256()
    async with task.input() as stdin:
        for number in range(6):
            piece = random.Random(number).randbytes(100_000)
            digest.update(piece)
            stdin.write(piece)
            if number % 2:
                await stdin.drain()
                await asyncio.to_thread(daemon.restart)
    assert heeler.outcome(await task.wait(timeout=DEADLINE)) == Exited(0)
    (line,) = [line.text async for line in task.lines()]
    assert line.split()[0] == digest.hexdigest()


async def test_a_task_that_does_not_read_stops_its_writer_alone(client: Client) -> None:
    """I3."""
    task = await client.spawn("exec sleep 1000", input=True)
    writer = task.input()
    writer.write(b"x" * 2_000_000)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(writer.drain(), 0.3)
    other = await client.spawn("cat", input=True)
    async with other.input() as stdin:
        stdin.write(b"hello")
    assert heeler.outcome(await other.wait(timeout=DEADLINE)) == Exited(0)
    await task.cancel(force=True)
    with pytest.raises(heeler.InputBrokenError, match="takes no more input") as broken:
        await writer.flush()
    assert isinstance(broken.value, BrokenPipeError)
    assert isinstance(broken.value.__cause__, heeler.RefusedError)


async def test_a_closed_input_breaks_the_writer(client: Client) -> None:
    """I7."""
    task = await client.spawn("exec <&-; echo deaf; sleep 1000", input=True)
    assert (await anext(task.lines())).text == "deaf"
    writer = task.input()
    writer.write(b"x" * 1_000_000)
    with pytest.raises(BrokenPipeError):
        await writer.flush()
    ended = await client.spawn("true", input=True)
    await ended.wait()
    late = ended.input()
    late.write(b"x")
    with pytest.raises(BrokenPipeError):
        await late.flush()


async def test_a_second_writer_is_refused_unless_it_takes_over(client: Client) -> None:
    """I6."""
    task = await client.spawn("cat", input=True)
    first, second = task.input(), task.input()
    first.write(b"one\n")
    await first.flush()
    second.write(b"lost\n")
    with pytest.raises(heeler.InputHeldError) as held:
        await second.flush()
    assert held.value.metadata["writer_id"] == first.writer_id
    async with task.input(take_over=True) as third:
        third.write(b"two\n")
        await third.flush()
        first.write(b"lost\n")
        with pytest.raises(heeler.InputTakenOverError):
            await first.flush()
    await task.wait(timeout=DEADLINE)
    assert [line.text async for line in task.lines()] == ["one", "two"]


async def test_a_program_that_is_started_again_writes_on(client: Client) -> None:
    """I2, I6."""
    task = await client.spawn("cat", input=True)
    for word in (b"one\n", b"two\n"):
        writer = task.input(writer_id="host-1")
        writer.write(word)
        await writer.flush()
    await client.write_input(task, b"three\n", writer_id="host-1", close=True)
    await task.wait(timeout=DEADLINE)
    assert [line.text async for line in task.lines()] == ["one", "two", "three"]


async def test_a_terminal_has_its_size_echoes_and_is_resized(client: Client) -> None:
    """I5."""
    script = (
        "trap 'stty size' WINCH; test -t 0 && stty size; while read line; do echo \"<$line>\"; done"
    )
    task = await client.spawn(script, terminal_columns=100, terminal_rows=30)
    lines = task.lines()
    assert (await anext(lines)).text.strip() == "30 100"
    await task.resize(120, 40)
    writer = task.input()
    writer.write(b"hello\n")
    seen = [(await anext(lines)).text.strip() for _ in range(3)]
    assert sorted(seen) == ["40 120", "<hello>", "hello"]
    screen = (await client.inspect(task, include_screen=True)).screen
    assert (screen.columns, screen.rows) == (120, 40)
    assert "<hello>" in screen.lines
    writer.write_eof()
    await task.wait(timeout=DEADLINE)


async def test_the_interrupt_character_of_a_terminal_is_a_signal(client: Client) -> None:
    """I5."""
    task = await client.spawn("echo up; exec sleep 1000", terminal=True)
    assert (await anext(task.lines())).text.strip() == "up"
    await client.write_input(task, b"\x03")
    ended = await task.wait(timeout=DEADLINE)
    assert heeler.outcome(ended) == heeler.Signalled(2, "SIGINT", core_dumped=False)
    assert ended.state == TaskState.FAILED


async def test_bad_sizes_are_refused_by_field(client: Client) -> None:
    """I7."""
    with pytest.raises(heeler.InvalidFieldError, match="terminal_columns"):
        await client.spawn("true", terminal_columns=65535)
    task = await client.spawn("sleep 1000", terminal=True)
    for columns, rows in ((0, 24), (80, 0), (65535, 24)):
        with pytest.raises(heeler.InvalidFieldError):
            await task.resize(columns, rows)
    with pytest.raises(heeler.InputGapError) as gap:
        await client.write_input(task, b"x", offset=5)
    assert gap.value.metadata["offset"] == "0"
