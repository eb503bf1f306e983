"""The progress that a worker reports: checked, and cut where the daemon would cut it.

A worker's stream ends with a refusal, so what the daemon would refuse is refused here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from heeler.v1 import Block, ProgressUpdate
from heeler.v1.enums import BlockKind

_TEXT = 4096
_NAME = 256
_INTENT = 1024
"""Bytes at which the daemon cuts a text. It is cut here, so that the rest does not travel."""
_COUNTERS = 32
_COUNTER_NAME = 64
_BLOCKS = 100
"""Blocks of one message. More are sent in several, each far below the size that gRPC accepts."""


def block(kind: BlockKind, text: str, name: str = "") -> Block:
    """Returns a block for a report."""
    return Block(kind=kind, text=_cut(text, _TEXT), text_bytes=_size(text), name=_cut(name, _NAME))


def updates(
    blocks: Iterable[Block],
    intent: str | None,
    percent: int | None,
    counts: Mapping[str, int] | None,
) -> list[ProgressUpdate]:
    """Returns the messages for a report. Raises ValueError for what the daemon would refuse."""
    if percent is not None and not 0 <= percent <= 100:
        raise ValueError(f"percent must be from 0 to 100, not {percent}")
    if counts and len(counts) > _COUNTERS:
        raise ValueError(f"counts has {len(counts)} counters: at most {_COUNTERS} are allowed")
    for name in counts or ():
        if _size(name) > _COUNTER_NAME:
            raise ValueError(f"counts has a name of more than {_COUNTER_NAME} bytes: {name!r}")
    given = map(_checked, blocks)
    last = ProgressUpdate(
        blocks=islice(given, _BLOCKS),
        intent=None if intent is None else _cut(intent, _INTENT),
        percent=percent,
        counts=counts,
    )
    return [last, *_rest(given)]


def _rest(blocks: Iterator[Block]) -> Iterator[ProgressUpdate]:
    while some := list(islice(blocks, _BLOCKS)):
        yield ProgressUpdate(blocks=some)


def _checked(given: Block) -> Block:
    if given.kind not in list(BlockKind):
        raise ValueError(f"{given.kind} is not the kind of a block")
    cut = block(BlockKind(given.kind), given.text, given.name)
    cut.text_bytes = given.text_bytes or cut.text_bytes
    return cut


def _size(text: str) -> int:
    return len(text.encode(errors="replace"))


def _cut(text: str, limit: int) -> str:
    """Returns the text up to a number of bytes, without a part of a character at its end."""
    return text.encode(errors="replace")[:limit].decode(errors="ignore")
