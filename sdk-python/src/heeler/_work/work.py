"""The handle of a worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from heeler._calls.retry import Retry
from heeler._errors.base import HeelerError
from heeler._work.driver import Driver
from heeler._work.progress import block, updates
from heeler._work.result import Returned, WorkResult, of_cancellation, of_failure, to_result
from heeler._work.stop import record_stop
from heeler.v1 import BackgroundTask, Block, TaskMessage, WorkCancel, WorkRequest
from heeler.v1.enums import BlockKind

if TYPE_CHECKING:
    from heeler._calls.client import Client
    from heeler._calls.task import Task

_LEFT = "the worker left before it delivered a result"


class Work:
    """The worker of one task, made by `Client.host`, `register`, `join` or `current`.

    The connection is kept by itself, across restarts of the daemon, and so is the lease of a hosted
    task. That is no sign of activity: a worker that hangs becomes stale. `report`, its short forms
    and `heartbeat` are.

    As a context manager it leaves the task at the end of the block. A hosted task without a result
    then ends: FAILED if the block raised an exception, else CANCELLED.
    """

    def __init__(self, task: Task, driver: Driver) -> None:
        self._task = task
        self._driver = driver
        self._loop = asyncio.get_running_loop()

    @property
    def task(self) -> Task:
        """The handle of the task."""
        return self._task

    @property
    def stopping(self) -> asyncio.Event:
        """Set when the task is asked to stop: finish the present tool call, begin no new one."""
        return self._driver.stopping

    @property
    def cancelled(self) -> asyncio.Event:
        """Set when the work must stop now: the soft phase of a stop is over, or the task ended."""
        return self._driver.cancelled

    @property
    def cancel_request(self) -> WorkCancel | None:
        """The latest request to stop, with its reason and its deadline."""
        return self._driver.cancel

    async def admitted(self) -> BackgroundTask | None:
        """Waits until a queued task may begin. Returns the task if it has ended instead."""
        await self._driver.until(lambda: self._driver.is_admitted)
        return None if self._driver.is_admitted else self._over()

    async def report(
        self,
        *,
        blocks: Iterable[Block] = (),
        intent: str | None = None,
        percent: int | None = None,
        counts: Mapping[str, int] | None = None,
    ) -> None:
        """Reports progress, which counts as activity.

        What is None stays as it was; counts replace all earlier ones. It waits only if the daemon
        is slow or away, and a report is sent again until the daemon has acknowledged it. After the
        end of the task it does nothing. Raises ValueError for what the daemon would refuse.
        """
        for update in updates(blocks, intent, percent, counts):
            await self._driver.report(update)

    async def text(self, text: str) -> None:
        """Reports text that the worker has written."""
        await self.report(blocks=[block(BlockKind.TEXT, text)])

    async def thought(self, text: str) -> None:
        """Reports the worker's reasoning."""
        await self.report(blocks=[block(BlockKind.THOUGHT, text)])

    async def tool_call(self, name: str, arguments: str = "") -> None:
        """Reports the call of a tool."""
        await self.report(blocks=[block(BlockKind.TOOL_CALL, arguments, name)])

    async def tool_result(self, name: str, text: str = "") -> None:
        """Reports the result of a tool."""
        await self.report(blocks=[block(BlockKind.TOOL_RESULT, text, name)])

    async def note(self, text: str) -> None:
        """Reports anything else."""
        await self.report(blocks=[block(BlockKind.NOTE, text)])

    async def heartbeat(self) -> None:
        """Says that the work goes on. Counts as activity."""
        self._driver.outbox.beat()
        self._driver.send()

    async def message(self) -> TaskMessage | None:
        """Waits for the next message to the task. None after its end.

        A message is received once this returns it, and is returned once.
        """
        driver = self._driver
        await driver.until(lambda: bool(driver.messages))
        if not driver.messages:
            return None
        message = driver.messages.popleft()
        driver.outbox.receive(message.number)
        driver.send()
        return message

    def messages(self) -> Messages:
        """Returns the messages to the task, to its end."""
        return Messages(self)

    async def deliver(self, result: Returned = None) -> None:
        """Delivers the result, and returns when it is durable. A text is that of work that is done.

        It ends a hosted task; the processes of any other task go on until they exit.
        """
        message = to_result(result).to_message()
        if self._driver.over is None:
            self._driver.outbox.deliver(message)
            self._driver.send()
        await self._driver.until(lambda: self._driver.outbox.is_delivered)
        if not self._driver.outbox.is_delivered:
            self._over()

    async def finish(self, result: Returned = None) -> BackgroundTask:
        """Delivers the result of a hosted task, and returns the finished task."""
        await self.deliver(result)
        return await self.ended()

    async def ended(self) -> BackgroundTask:
        """Waits for the end of the task.

        Raises WorkerReplacedError if another worker has taken the place of this one.
        """
        await self._driver.until(lambda: False)
        return self._over()

    async def close(self) -> None:
        """Leaves the task. A hosted task without a result ends CANCELLED."""
        await self._driver.close(WorkResult.cancelled(_LEFT))

    async def __aenter__(self) -> Work:
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        await self._leave(error)

    async def _leave(self, error: BaseException | None) -> None:
        match error:
            case Exception():
                await self._close(of_failure(error))
            case None:
                await self.close()
            case _:
                await self._close(of_cancellation(error, _LEFT))

    async def _close(self, result: WorkResult) -> None:
        await self._driver.close(result)

    def _over(self) -> BackgroundTask:
        over = self._driver.over
        if isinstance(over, HeelerError):
            raise over
        assert over is not None, "the work is over"
        return over

    def __del__(self) -> None:
        # A hosted task would be live for as long as this program is.
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._driver.abandon, WorkResult.cancelled(_LEFT))

    def __repr__(self) -> str:
        return f"Work({self._task.id!r})"


class Messages(AsyncIterator[TaskMessage]):
    """The messages to a task. A step that is cancelled loses nothing."""

    def __init__(self, work: Work) -> None:
        self._work = work

    async def __anext__(self) -> TaskMessage:
        message = await self._work.message()
        if message is None:
            raise StopAsyncIteration
        return message


async def open_work(client: Client, first: WorkRequest, retry: Retry, retry_for: float) -> Work:
    """Registers or joins a task. If the caller is cancelled meanwhile, no task is left behind."""
    driver = Driver(client, retry_for)
    starting = asyncio.ensure_future(driver.start(first, retry))
    try:
        await asyncio.shield(starting)
    except asyncio.CancelledError as cause:
        await asyncio.wait([starting])
        if not starting.cancelled() and starting.exception() is None:
            if first.HasField("register"):
                await record_stop(client.task(driver.task_id), cause)
            await driver.close(WorkResult.cancelled(_LEFT))
        raise
    return Work(client.task(driver.task_id), driver)
