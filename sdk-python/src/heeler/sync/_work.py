"""The blocking face of a worker."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from types import TracebackType

from heeler._options.time import Span, to_seconds
from heeler._work import work as asyncio_work
from heeler._work.result import Returned
from heeler.sync import _thread
from heeler.sync._face import Face, blocking, iterating
from heeler.sync._task import Task
from heeler.v1 import WorkCancel


class Work(Face[asyncio_work.Work]):
    """The blocking face of heeler.Work. Any thread may use it."""

    def __init__(self, inner: asyncio_work.Work, timeout: float | None) -> None:
        super().__init__(inner, timeout)
        self._stopping = _mirror(inner.stopping)
        self._cancelled = _mirror(inner.cancelled)

    def within(self, timeout: Span) -> Work:
        """Returns the same worker with a deadline: calls and steps raise TimeoutError after it."""
        return Work(self._inner, to_seconds(timeout))

    @property
    def task(self) -> Task:
        """The handle of the task."""
        return Task(self._inner.task, self._timeout)

    @property
    def stopping(self) -> threading.Event:
        """Set when the task is asked to stop: finish the present tool call, begin no new one."""
        return self._stopping

    @property
    def cancelled(self) -> threading.Event:
        """Set when the work must stop now: the soft phase of a stop is over, or the task ended."""
        return self._cancelled

    @property
    def cancel_request(self) -> WorkCancel | None:
        """The latest request to stop, with its reason and its deadline."""
        return self._inner.cancel_request

    admitted = blocking(asyncio_work.Work.admitted)
    report = blocking(asyncio_work.Work.report)
    text = blocking(asyncio_work.Work.text)
    thought = blocking(asyncio_work.Work.thought)
    tool_call = blocking(asyncio_work.Work.tool_call)
    tool_result = blocking(asyncio_work.Work.tool_result)
    note = blocking(asyncio_work.Work.note)
    heartbeat = blocking(asyncio_work.Work.heartbeat)
    message = blocking(asyncio_work.Work.message)
    messages = iterating(asyncio_work.Work.messages)
    deliver = blocking(asyncio_work.Work.deliver)
    finish = blocking(asyncio_work.Work.finish)
    ended = blocking(asyncio_work.Work.ended)
    close = blocking(asyncio_work.Work.close)

    def __enter__(self) -> Work:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        _thread.run(self._inner._leave(error))

    def __repr__(self) -> str:
        return repr(self._inner)


Body = Callable[[Work], Returned]
"""A function that does the work of a task and returns its result."""


def _mirror(inner: asyncio.Event) -> threading.Event:
    """Returns an event for threads that is set after the one of the loop.

    It has no reference to the worker, which leaves its task when the last handle is dropped.
    """
    event = threading.Event()

    async def wait() -> None:
        await inner.wait()
        event.set()

    _thread.start(wait())
    return event
