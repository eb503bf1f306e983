"""A wait for a condition of an object that lives on one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Changes:
    """The changes of an object. Those who wait look at the condition after each of them."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def announce(self) -> None:
        """Wakes all who wait."""
        changed, self._next = self._next, asyncio.Event()
        changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits until the condition holds."""
        while not condition():
            await self._next.wait()
