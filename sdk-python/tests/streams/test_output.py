"""Reading output: every byte, from any offset, by any number of readers."""

import asyncio
import itertools
from pathlib import Path

import pytest

from harness.daemon import Daemon
from heeler import Client, Gap, Output, OutputGapCause, OutputStream, OutputView


async def test_output_follows_chunks_with_offsets_streams_and_times(
    client: Client, tmp_path: Path
) -> None:
    """O4."""
    script = """
        echo out; while [ ! -e one ]; do sleep 0.01; done
        echo err >&2; while [ ! -e two ]; do sleep 0.01; done
        printf end"""
    task = await client.spawn(script, cwd=tmp_path)
    output = task.output()
    chunks = []
    for written in ("one", "two"):
        chunks.append(await anext(output))
        (tmp_path / written).touch()
    chunks += [chunk async for chunk in output]
    assert [(chunk.offset, chunk.data) for chunk in chunks] == [
        (0, b"out\n"),
        (4, b"err\n"),
        (8, b"end"),
    ]
    stdout, stderr = OutputStream.STDOUT, OutputStream.STDERR
    assert [chunk.stream for chunk in chunks] == [stdout, stderr, stdout]
    assert chunks[0].read_time <= chunks[1].read_time
    assert chunks[-1].end == 11


async def test_output_starts_at_an_offset_and_can_stop_at_the_present_end(
    client: Client,
) -> None:
    """O1, O3."""
    task = await client.spawn("printf abcdef; sleep 100")
    await anext(task.output())

    async def read(**place: int) -> bytes:
        return b"".join([chunk.data async for chunk in task.output(**place, follow=False)])

    assert await read() == b"abcdef"
    assert await read(offset=4) == b"ef"
    assert await read(tail_bytes=3) == b"def"
    assert await read(offset=100) == b""


async def test_rotated_output_has_a_gap(client: Client) -> None:
    """O8."""
    task = await client.spawn("seq 1 100000", max_output=262144, on_output_limit="rotate")
    await task.wait()
    chunks = [chunk async for chunk in task.output()]
    for before, after in itertools.pairwise(chunks):
        assert before.end == after.offset
    (missing,) = [chunk for chunk in chunks if chunk.gap]
    assert missing.gap == Gap(missing.end - missing.offset, OutputGapCause.ROTATED)
    assert chunks[-1].end == 588895
    lines = [line.text async for line in task.lines()]
    assert lines[0] == "1"
    assert lines[-1] == "100000"


async def test_large_output_is_complete_for_several_readers(client: Client) -> None:
    """O2."""
    task = await client.spawn("head -c 3000000 /dev/zero | tr '\\0' x")
    sizes = await asyncio.gather(*(total(task.output()) for _ in range(3)))
    assert sizes == [3_000_000] * 3


async def total(output: Output) -> int:
    return len(b"".join([chunk.data async for chunk in output]))


async def test_lines_arrive_as_they_are_written(client: Client) -> None:
    task = await client.spawn("echo one; echo two >&2; printf three; sleep 100")
    lines = task.lines()
    assert {(await anext(lines)).text, (await anext(lines)).text} == {"one", "two"}
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(anext(lines), 0.05)
    await task.cancel()
    rest = [line async for line in lines]
    assert [(line.text, line.ended) for line in rest] == [("three", False)]


async def test_read_output_returns_bytes_or_text(client: Client) -> None:
    """O5."""
    task = await client.spawn(r"printf '\303\244\377'")
    await task.wait()
    raw = await client.read_output(task, wait=10)
    assert raw.chunks[0].data == b"\xc3\xa4\xff"
    assert raw.complete
    text = await client.read_output(task, offset=0, view=OutputView.TEXT, max_bytes=100)
    assert text.chunks[0].text == "ä\ufffd"
    assert (await client.read_output(task, tail_bytes=1)).chunks[0].data == b"\xff"


async def test_a_reader_continues_after_a_restart(client: Client, daemon: Daemon) -> None:
    """O11, R1."""
    script = "echo before; while [ ! -e go ]; do sleep 0.01; done; echo after"
    task = await client.spawn(script, cwd=daemon.directory)
    lines = task.lines()
    assert (await anext(lines)).text == "before"
    following = asyncio.ensure_future(anext(lines))
    await asyncio.to_thread(daemon.restart)
    (daemon.directory / "go").touch()
    assert (await following).text == "after"
    assert [line async for line in lines] == []
