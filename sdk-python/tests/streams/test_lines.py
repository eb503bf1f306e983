"""The split of output into lines."""

from collections.abc import AsyncIterator
from datetime import datetime, timezone

import pytest

from heeler import Chunk, Gap, Line, OutputGapCause, OutputStream
from heeler._streams import output
from heeler._streams.output import Lines

OUT, ERR = OutputStream.STDOUT, OutputStream.STDERR


async def lines_of(chunks: list[tuple[int, OutputStream, bytes]]) -> list[Line]:
    async def arriving() -> AsyncIterator[Chunk]:
        for offset, stream, data in chunks:
            yield Chunk(offset, stream, datetime.now(timezone.utc), data)

    return [line async for line in Lines(arriving())]


async def test_each_stream_has_lines_of_its_own() -> None:
    lines = await lines_of(
        [(0, OUT, b"on"), (2, ERR, b"er"), (4, OUT, b"e\n\ntw"), (9, ERR, b"r\n")]
    )
    assert lines == [
        Line(0, OUT, "one", True),
        Line(6, OUT, "", True),
        Line(2, ERR, "err", True),
        Line(7, OUT, "tw", False),
    ]


async def test_a_character_split_between_chunks_is_whole_in_its_line() -> None:
    lines = await lines_of([(0, OUT, b"\xc3"), (1, OUT, b"\xa4\xff\n")])
    assert [line.text for line in lines] == ["ä\ufffd"]


async def test_a_very_long_line_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_LONGEST_LINE", 4)
    lines = await lines_of([(0, OUT, b"abcdef"), (6, OUT, b"g\n")])
    assert lines == [Line(0, OUT, "abcdef", False), Line(6, OUT, "g", True)]


async def test_a_gap_ends_the_unfinished_lines() -> None:
    """O8."""

    async def arriving() -> AsyncIterator[Chunk]:
        now = datetime.now(timezone.utc)
        yield Chunk(0, OUT, now, b"first\nsec")
        gap = Gap(91, OutputGapCause.ROTATED)
        yield Chunk(9, OutputStream.UNSPECIFIED, now, b"", gap)
        yield Chunk(100, OUT, now, b"last\n")

    assert [line async for line in Lines(arriving())] == [
        Line(0, OUT, "first", True),
        Line(6, OUT, "sec", False),
        Line(100, OUT, "last", True),
    ]
