"""An iterator over calls that each give some items and the place to go on from."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Generic, TypeVar

C = TypeVar("C")
T = TypeVar("T")

Fetch = Callable[[C], Awaitable[tuple[Iterable[T], C | None]]]
"""Asks at a place; gives the items there and the next place, None if these were the last."""


class Pages(AsyncIterator[T], Generic[C, T]):
    """Items, fetched in batches. Nothing is asked before it is needed.

    A step that is cancelled, by a timeout for instance, loses nothing: the next one asks again.
    """

    def __init__(self, first: C, fetch: Fetch[C, T]) -> None:
        self._place: C | None = first
        self._fetch = fetch
        self._ready: deque[T] = deque()

    async def __anext__(self) -> T:
        while not self._ready:
            if self._place is None:
                raise StopAsyncIteration
            items, self._place = await self._fetch(self._place)
            self._ready.extend(items)
        return self._ready.popleft()
