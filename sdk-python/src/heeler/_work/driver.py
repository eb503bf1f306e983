"""The keeper of a worker's stream: it reconnects, keeps the lease, and knows the state of the task.

It has no reference to the handles, so that a handle that is dropped can end it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from heeler._calls.backoff import Backoff
from heeler._calls.changes import Changes
from heeler._calls.retry import Retry, retrying
from heeler._errors import status
from heeler._errors.base import ClientClosedError, DisconnectedError, HeelerError, WorkClosedError
from heeler._work.outbox import Outbox
from heeler._work.result import WorkResult
from heeler._work.stream import OutboxStream
from heeler.v1 import (
    BackgroundTask,
    ProgressUpdate,
    TaskMessage,
    WorkCancel,
    WorkJoin,
    WorkJoined,
    WorkRequest,
    WorkResponse,
)
from heeler.v1.enums import TaskState, WorkCancelMode
from heeler.v1.errors import WorkerConnectedError, WorkerReplacedError

if TYPE_CHECKING:
    from heeler._calls.connection import Connection

_ATTEMPTS_PER_LEASE = 4
"""Attempts to reconnect in the time of one lease, at least."""

_CLOSE_FOR = 5.0
"""Seconds for which a worker that leaves waits for the acknowledgement of its result, at least."""

_BEGUN = frozenset({TaskState.STARTING, TaskState.RUNNING, TaskState.STOPPING})
"""The states in which work may begin. A task that ended in its queue has none."""


class Driver:
    """The worker of one task, as the daemon knows it."""

    def __init__(self, connection: Connection, retry_for: float) -> None:
        self._connection = connection
        self._retry_for = retry_for
        self.outbox = Outbox()
        self.stopping = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.cancel: WorkCancel | None = None
        self.messages: deque[TaskMessage] = deque()
        self.is_admitted = False
        self.over: BackgroundTask | HeelerError | None = None
        self.task_id = ""
        self._worker_id = ""
        self._lease: float | None = None
        self._latest_message = 0
        self._changes = Changes()
        self._reporting = asyncio.Lock()
        self._stream: OutboxStream | None = None
        self._running: asyncio.Task[None] | None = None
        self._is_leaving = False
        self._closing: asyncio.Task[None] | None = None

    @property
    def is_hosted(self) -> bool:
        """True if the task is this worker's alone, and lost without it."""
        return self._lease is not None

    async def start(self, first: WorkRequest, retry: Retry) -> None:
        """Opens the first stream. From then on the driver runs by itself."""
        stream = await retrying(self._connection, lambda: self._open(first), retry, self._retry_for)
        self._running = asyncio.create_task(self._run(stream))

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits until a condition holds, or the work is over."""
        await self._changes.until(lambda: self.over is not None or condition())

    async def report(self, update: ProgressUpdate) -> None:
        """Adds progress to the outbox, once it has room."""
        # One waits for room, the others for their turn: an acknowledgement does not wake all.
        async with self._reporting:
            await self.until(lambda: self.outbox.has_room)
            if self.over is None:
                self.outbox.report(update)
                self.send()

    def send(self) -> None:
        """Sends what is new in the outbox, now or after a reconnect."""
        if self._stream is not None:
            self._stream.send()

    async def close(self, result: WorkResult) -> None:
        """Leaves the task once everything is delivered.

        A hosted task without a result gets this one, and so is not lost. A daemon that is away is
        waited for as long as a call would be repeated, or five seconds.
        """
        if self._running is None:
            return
        if self.is_hosted and not self.outbox.has_result:
            self.outbox.deliver(result.to_message())
            self.send()
        with contextlib.suppress(asyncio.TimeoutError):
            left = self._left(self._running)
            await asyncio.wait_for(left, max(_CLOSE_FOR, self._retry_for))
        self._running.cancel()
        await asyncio.wait([self._running])

    def abandon(self, result: WorkResult) -> None:
        """Closes in the background."""
        if self.over is None:
            self._closing = asyncio.get_running_loop().create_task(self.close(result))

    async def _left(self, running: asyncio.Task[None]) -> None:
        await self.until(lambda: self.outbox.is_empty)
        self._is_leaving = True
        if self._stream is not None:
            self._stream.finish()
        await asyncio.wait([running])

    async def _open(self, first: WorkRequest) -> OutboxStream:
        stream = OutboxStream(self._connection, first, self.outbox)
        self._joined(await stream.join())
        self._stream = stream
        if self._is_leaving:
            stream.finish()
        return stream

    async def _run(self, stream: OutboxStream) -> None:
        backoff = Backoff(None)
        begun = time.monotonic()
        try:
            error = await self._serve(stream)
            while error is not None and not _is_final(error):
                self._drop_stream()
                backoff.limit_delay((self._lease or 60.0) / _ATTEMPTS_PER_LEASE)
                lasted, connected = time.monotonic() - begun, status.was_connected(error)
                await asyncio.sleep(backoff.after_failure(lasted, connected=connected) or 0.0)
                begun = time.monotonic()
                error = await self._reconnect()
            if error is not None:
                self._end(error)
        finally:
            self._drop_stream()
            if self.over is None:
                self._end(WorkClosedError(f"the worker has left {self.task_id}"))

    async def _reconnect(self) -> HeelerError | None:
        """Joins again and serves the stream, as `_serve` does."""
        join = WorkJoin(task_id=self.task_id, worker_id=self._worker_id)
        first = WorkRequest(join=join)
        try:
            stream = await retrying(self._connection, lambda: self._open(first), Retry.NEVER, 0)
        except WorkerConnectedError as error:
            # Its own place is never refused to a worker: another one has it.
            return WorkerReplacedError(error.details)
        except HeelerError as error:
            return error
        return await self._serve(stream)

    async def _serve(self, stream: OutboxStream) -> HeelerError | None:
        """Takes the messages of one stream. Returns the error that ends it before the task ends."""
        try:
            while self.over is None:
                response = await stream.read()
                if response is None and self._is_leaving:
                    return None
                if response is None:
                    return DisconnectedError(self._connection.address)
                self._take(response)
                self._changes.announce()
        except HeelerError as error:
            return error
        return None

    def _joined(self, joined: WorkJoined) -> None:
        self.task_id = joined.task.id
        self._worker_id = joined.worker_id
        if joined.HasField("lease"):
            self._lease = joined.lease.ToTimedelta().total_seconds()
        self.is_admitted |= joined.task.state in _BEGUN
        self._changes.announce()

    def _take(self, response: WorkResponse) -> None:
        match response.WhichOneof("item"):
            case "admitted":
                self.is_admitted = True
            case "cancel":
                self.cancel = response.cancel
                self.stopping.set()
                if response.cancel.mode != WorkCancelMode.SOFT:
                    self.cancelled.set()
            case "message":
                # After a reconnect the daemon sends those again that have no receipt.
                if response.message.number > self._latest_message:
                    self._latest_message = response.message.number
                    self.messages.append(response.message)
            case "acknowledged":
                self.outbox.acknowledge(response.acknowledged.sequence)
            case "ended":
                self._end(response.ended.task)
            case "joined" | None:
                pass  # None: an item that only newer clients know.

    def _end(self, over: BackgroundTask | HeelerError) -> None:
        self.over = over
        self.stopping.set()
        self.cancelled.set()
        self._changes.announce()

    def _drop_stream(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def _is_final(error: HeelerError) -> bool:
    """Returns True if joining again would fail again, or the client is closed."""
    return status.is_final(error) or isinstance(error, (WorkerReplacedError, ClientClosedError))
