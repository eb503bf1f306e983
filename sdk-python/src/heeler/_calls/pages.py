"""An iterator over calls that each return some items and the position of the next call."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Generic, TypeVar

C = TypeVar("C")
T = TypeVar("T")

Fetch = Callable[[C], Awaitable[tuple[Iterable[T], C | None]]]
"""Returns the items at a position and the next position; None after the last items."""


class Pages(AsyncIterator[T], Generic[C, T]):
    """Items that are fetched in batches, when they are needed.

    A step that is cancelled, for example by a timeout, loses nothing: the next one asks again.
    """

    def __init__(self, first: C, fetch: Fetch[C, T]) -> None:
        self._position: C | None = first
        self._fetch = fetch
        self._ready: deque[T] = deque()

    async def __anext__(self) -> T:
        while not self._ready:
            if self._position is None:
                raise StopAsyncIteration
            items, self._position = await self._fetch(self._position)
            self._ready.extend(items)
        return self._ready.popleft()
