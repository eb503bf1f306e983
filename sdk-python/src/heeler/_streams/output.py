"""The output of a task as chunks and as lines, followed to its end."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from heeler._calls.pages import Pages
from heeler._options.time import to_datetime
from heeler.v1 import OutputChunk
from heeler.v1.enums import OutputGapCause, OutputStream

if TYPE_CHECKING:
    from heeler._calls.client import Client

_POLL = 60.0
"""Seconds for which one call waits for output. Then the iterator asks again."""

_LONGEST_LINE = 1024 * 1024
"""A longer line is returned in pieces, so that memory stays bounded."""


@dataclass(frozen=True)
class Gap:
    """Output that is missing."""

    length: int
    """The number of missing bytes."""
    cause: OutputGapCause


@dataclass(frozen=True)
class Chunk:
    """Bytes of one stream that arrived together, or a gap."""

    offset: int
    """The offset of the first byte. It names the same byte for good."""
    stream: OutputStream
    """UNSPECIFIED for a gap."""
    read_time: datetime
    """The time at which the bytes were read from the task. 1970 for a gap."""
    data: bytes
    """Empty for a gap."""
    gap: Gap | None = None
    """The output that is missing from `offset` on, if this is a gap."""
    begins_group: bool = False
    """True if a filter with lines of context has left out the line before this one."""

    @property
    def end(self) -> int:
        """The offset after the last byte or the gap: the offset to resume from."""
        return self.offset + (self.gap.length if self.gap else len(self.data))


@dataclass(frozen=True)
class Line:
    """A line of one stream, without its newline."""

    offset: int
    """The offset of the first byte."""
    stream: OutputStream
    text: str
    """The text; invalid UTF-8 is replaced by U+FFFD."""
    ended: bool
    """False if no newline follows: the last line of a stream, or a piece of a very long line."""


class Output(Pages[tuple[int | None, int | None], Chunk]):
    """The output of a task from a position on.

    Reading has no effect on the task or on other readers. A daemon that restarts is waited for.
    """

    def __init__(
        self, client: Client, task_id: str, offset: int, tail_bytes: int | None, *, follow: bool
    ) -> None:
        """With `follow` it ends when no byte can follow, else at the present end."""

        async def fetch(
            position: tuple[int | None, int | None],
        ) -> tuple[Iterator[Chunk], tuple[int | None, int | None] | None]:
            start, tail = position
            page = await client.read_output(
                task_id, offset=start, tail_bytes=tail, wait=_POLL if follow else None
            )
            chunks = map(to_chunk, page.chunks)
            if page.next_offset >= page.end_offset and (page.complete or not follow):
                return chunks, None
            return chunks, (page.next_offset, None)

        super().__init__((offset, None) if tail_bytes is None else (None, tail_bytes), fetch)


class Lines(AsyncIterator[Line]):
    """The lines of both streams, in the order in which they end."""

    def __init__(self, chunks: AsyncIterator[Chunk]) -> None:
        self._chunks = chunks
        self._open: dict[OutputStream, tuple[int, bytes]] = {}
        self._ready: deque[Line] = deque()

    async def __anext__(self) -> Line:
        while not self._ready:
            chunk = await anext(self._chunks, None)
            if chunk is not None:
                self._ready.extend(self._split(chunk))
            elif self._open:
                self._ready.extend(self._rest())
            else:
                raise StopAsyncIteration
        return self._ready.popleft()

    def _split(self, chunk: Chunk) -> Iterator[Line]:
        if chunk.gap:
            yield from self._rest()
            return
        start, text = self._open.pop(chunk.stream, (chunk.offset, b""))
        *ended, rest = chunk.data.split(b"\n")
        at = chunk.offset
        for piece in ended:
            yield _line(start, chunk.stream, text + piece, ended=True)
            at += len(piece) + 1
            start, text = at, b""
        text += rest
        if len(text) >= _LONGEST_LINE:
            yield _line(start, chunk.stream, text, ended=False)
        elif text:
            self._open[chunk.stream] = (start, text)

    def _rest(self) -> Iterator[Line]:
        for stream, (start, text) in sorted(self._open.items(), key=lambda item: item[1]):
            yield _line(start, stream, text, ended=False)
        self._open.clear()


def _line(offset: int, stream: OutputStream, text: bytes, *, ended: bool) -> Line:
    return Line(offset, stream, text.decode(errors="replace"), ended)


def to_chunk(chunk: OutputChunk) -> Chunk:
    """Converts a chunk of an answer."""
    data = chunk.text.encode() if chunk.HasField("text") else chunk.data
    gap = None
    if chunk.HasField("gap"):
        gap = Gap(chunk.gap.length, OutputGapCause(chunk.gap.cause))
    read_time = to_datetime(chunk.read_time)
    stream = OutputStream(chunk.stream)
    return Chunk(chunk.offset, stream, read_time, data, gap, chunk.begins_group)
