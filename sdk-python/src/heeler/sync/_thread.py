"""The event loop behind the blocking client: one thread for the process, started at first use.

There is only one because gRPC's asyncio layer wakes every loop for each event.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

from heeler._errors.base import HeelerError

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def run(work: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
    """Runs the work on the loop and waits for it. Raises TimeoutError after the timeout.

    If the caller is interrupted, for example by Ctrl-C, the work is cancelled.
    """
    future = asyncio.run_coroutine_threadsafe(_within(work, timeout), _running_loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def start(work: Coroutine[Any, Any, object]) -> None:
    """Begins the work on the loop, and does not wait for it."""
    asyncio.run_coroutine_threadsafe(work, _running_loop())


async def _within(work: Awaitable[T], timeout: float | None) -> T:
    try:
        return await asyncio.wait_for(work, timeout)
    except HeelerError:
        # TaskStillRunningError is a TimeoutError itself.
        raise
    except asyncio.TimeoutError as error:
        # Before Python 3.11 this is not the built-in exception.
        raise TimeoutError(f"no answer within {timeout} s") from error


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="heeler", daemon=True).start()
            _loop = loop
        return _loop
