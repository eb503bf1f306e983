"""The work of a hosted task inside this program: a function, and what its end means for the task.

register ──> admitted ──> body ──> result ──> the finished task
                           │
                           ├── FINAL, or the end of the task: the body is cancelled
                           └── the caller is cancelled: the task as well, with that reason
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from heeler._work.result import Returned, WorkResult, of_cancellation, of_failure, to_result
from heeler._work.stop import record_stop
from heeler._work.work import Work
from heeler.v1 import BackgroundTask

Body = Callable[[Work], Awaitable[Returned]]
"""A function that does the work of a task and returns its result."""


async def host(work: Work, body: Body) -> BackgroundTask:
    """Runs the body as the worker, as Client.host describes."""
    async with work:
        ended = await _admitted(work)
        if ended is not None:
            return ended
        return await work.finish(await _run(work, body))


async def _admitted(work: Work) -> BackgroundTask | None:
    try:
        return await work.admitted()
    except asyncio.CancelledError as cause:
        await record_stop(work.task, cause)
        raise


async def _run(work: Work, body: Body) -> WorkResult:
    """Runs the body, and cancels it once the work must stop."""
    running = asyncio.ensure_future(body(work))
    must_stop = asyncio.ensure_future(work.cancelled.wait())
    try:
        await asyncio.wait([running, must_stop], return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            running.cancel(_reason(work))
            await asyncio.wait([running])
    except asyncio.CancelledError as cause:
        running.cancel(str(cause))
        await asyncio.wait([running, asyncio.ensure_future(record_stop(work.task, cause))])
        # The caller gets its cancellation, the task what the body has made of it.
        await work._close(_result(running, cause))
        raise
    finally:
        must_stop.cancel()
    return WorkResult.cancelled() if running.cancelled() else to_result(running.result())


def _result(running: asyncio.Future[Returned], cause: asyncio.CancelledError) -> WorkResult:
    try:
        return to_result(running.result())
    except asyncio.CancelledError:
        return of_cancellation(cause)
    except Exception as error:
        return of_failure(error)


def _reason(work: Work) -> str:
    return "" if work.cancel_request is None else work.cancel_request.reason
