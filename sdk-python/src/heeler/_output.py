"""What a task has written, as chunks and as lines, followed to its end."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from heeler import _time
from heeler._pages import Pages
from heeler.v1 import OutputChunk, ReadOutputRequest, ReadOutputResponse
from heeler.v1.enums import OutputStream

_POLL = 60.0
"""How long one call waits for output; the iterator then asks again."""

_LONGEST_LINE = 1024 * 1024
"""A longer one is given in pieces: what never ends must not be kept whole."""

Read = Callable[[ReadOutputRequest], Awaitable[ReadOutputResponse]]


@dataclass(frozen=True)
class Chunk:
    """Bytes of one stream that arrived together."""

    offset: int
    """The offset of the first byte: it means the same byte for ever."""
    stream: OutputStream.ValueType
    """Which stream they came from."""
    read_time: datetime
    """When they were read from the task."""
    data: bytes
    """The bytes."""

    @property
    def end(self) -> int:
        """The offset behind the last byte: where to take up reading later."""
        return self.offset + len(self.data)


@dataclass(frozen=True)
class Line:
    """A line of one stream, without its newline."""

    offset: int
    """The offset of its first byte."""
    stream: OutputStream.ValueType
    """Which stream it came from."""
    text: str
    """Its text; what is no UTF-8 is replaced by U+FFFD."""
    ended: bool
    """Whether a newline ended it: the last line may have none, and a very long one has pieces."""


class Output(Pages[ReadOutputRequest, Chunk]):
    """A task's output from some place on.

    Reading has no effect on the task or on other readers, and a daemon that restarts meanwhile is
    waited for.
    """

    def __init__(self, first: ReadOutputRequest, read: Read, *, follow: bool) -> None:
        """With `follow` until no byte will ever come, else until there is none at the moment."""
        if follow:
            first.wait.CopyFrom(_time.to_proto(_POLL))

        async def fetch(
            request: ReadOutputRequest,
        ) -> tuple[Iterator[Chunk], ReadOutputRequest | None]:
            page = await read(request)
            chunks = map(to_chunk, page.chunks)
            if page.next_offset >= page.end_offset and (page.complete or not follow):
                return chunks, None
            following = ReadOutputRequest()
            following.CopyFrom(request)
            following.offset = page.next_offset
            return chunks, following

        super().__init__(first, fetch)


class Lines(AsyncIterator[Line]):
    """The lines of an output, in the order in which they were ended; each stream has its own."""

    def __init__(self, chunks: AsyncIterator[Chunk]) -> None:
        self._chunks = chunks
        self._open: dict[OutputStream.ValueType, tuple[int, bytes]] = {}
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


def _line(offset: int, stream: OutputStream.ValueType, text: bytes, *, ended: bool) -> Line:
    return Line(offset, stream, text.decode(errors="replace"), ended)


def to_chunk(chunk: OutputChunk) -> Chunk:
    """A chunk from an answer."""
    data = chunk.text.encode() if chunk.HasField("text") else chunk.data
    return Chunk(chunk.offset, chunk.stream, _time.to_datetime(chunk.read_time), data)
