"""The calls of workers, and of those who talk to them: a part of the client."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import TYPE_CHECKING, cast

from heeler._calls.connection import Connection
from heeler._calls.retry import Retry, retrying
from heeler._options.fields import TaskRef, id_of
from heeler._options.spawn import HostOptions, register_request
from heeler._work.host import Body, host
from heeler._work.stream import RequestStream
from heeler._work.work import Work, open_work
from heeler.v1 import (
    BackgroundTask,
    Block,
    ProgressUpdate,
    ReportProgressRequest,
    ReportProgressResponse,
    SendMessageRequest,
    SendMessageResponse,
    WorkJoin,
    WorkRequest,
    WorkResponse,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from heeler._calls.client import Client

_OWN_TASK = "HEELER_TASK_ID"
"""The environment variable that names the task of a process."""


class WorkerCalls(Connection):
    """The calls of workers."""

    async def host(self, body: Body, **options: Unpack[HostOptions]) -> BackgroundTask:
        """Registers a hosted task, runs the body as its worker, and delivers what it returns.

        The body runs once the task is admitted. `Work.stopping` tells it to begin nothing new; when
        the work must stop now, it is cancelled, as any asyncio task. Its value is the result of the
        task, also then: a WorkResult, a text, or None. Returns the finished task.

        An exception of the body is the result FAILED and is raised here. If the task ends before
        the body does, for example because it is LOST, the body is cancelled and its value dropped.
        If another worker takes its place, this raises WorkerReplacedError. Cancelling the caller
        cancels the body and the task, with the message of the cancellation as its reason: the task
        is CANCELLED, and keeps the body's value.
        """
        return await host(await self.register(**options), body)

    async def register(self, **options: Unpack[HostOptions]) -> Work:
        """Registers a hosted task, for work that is no single function.

        Returns when the task exists; `Work.admitted` waits for one that is QUEUED.
        """
        return await self._open_work(WorkRequest(register=register_request(**options)))

    async def join(self, task: TaskRef, *, take_over: bool = False) -> Work:
        """Joins a task that exists, as its worker.

        A task has one worker: if another one is connected, this raises WorkerConnectedError, or
        takes its place with `take_over`.
        """
        join = WorkJoin(task_id=id_of(task), take_over=take_over)
        return await self._open_work(WorkRequest(join=join))

    async def current(self) -> Work | None:
        """Joins the task that this process runs in. None: it runs in none."""
        task = os.environ.get(_OWN_TASK)
        return await self.join(task) if task else None

    async def _open_work(self, first: WorkRequest) -> Work:
        return await open_work(cast("Client", self), first, _retry_of(first), self._retry_for)

    async def work(self, requests: AsyncIterator[WorkRequest]) -> AsyncIterator[WorkResponse]:
        """Opens the stream of a worker: sends the requests and yields the responses.

        The first request registers a hosted task or joins a task; it is repeated while the daemon
        starts. After the first response it does not reconnect: `host`, `register` and `join` do.
        """
        first = _repeatable(await anext(requests))
        stream, joined = await retrying(
            self,
            lambda: RequestStream.open(self, first, requests),
            _retry_of(first),
            self._retry_for,
        )
        try:
            yield joined
            while (response := await stream.read()) is not None:
                yield response
        finally:
            stream.close()

    async def report_progress(
        self,
        task: TaskRef,
        *,
        blocks: Iterable[Block] = (),
        intent: str | None = None,
        percent: int | None = None,
        counts: Mapping[str, int] | None = None,
        listens: bool = False,
    ) -> ReportProgressResponse:
        """Reports progress of a task. `cancel` in the answer says if the task is being stopped.

        With `listens` a cancel in the next minute begins softly. A call without anything else only
        asks; any other call is a sign of activity.
        """
        update = ProgressUpdate(blocks=blocks, intent=intent, percent=percent, counts=counts)
        asks_only = listens and update == ProgressUpdate()
        request = ReportProgressRequest(
            task_id=id_of(task), update=None if asks_only else update, listens=listens
        )
        return await self._call(self._raw.ReportProgress, request, Retry.IF_NOT_RECEIVED)

    async def send_message(
        self, task: TaskRef, text: str, *, message_id: str = "", actor: str = ""
    ) -> SendMessageResponse:
        """Puts a message into the mailbox of a task, for its worker.

        With a `message_id` the call is safe to repeat.
        """
        request = SendMessageRequest(
            task_id=id_of(task), text=text, message_id=message_id, actor=actor
        )
        retry = Retry.IF_TRANSIENT if message_id else Retry.IF_NOT_RECEIVED
        return await self._call(self._raw.SendMessage, request, retry)


def _repeatable(first: WorkRequest) -> WorkRequest:
    """Returns the first message of a worker with a request id, by which it may be sent again.

    A call that breaks while the message is being sent may or may not have reached the daemon.
    """
    if not first.HasField("register") or first.register.request_id:
        return first
    repeatable = WorkRequest()
    repeatable.CopyFrom(first)
    repeatable.register.request_id = str(uuid.uuid4())
    return repeatable


def _retry_of(first: WorkRequest) -> Retry:
    """Returns the failures after which a worker's first message may be sent again."""
    is_safe = first.HasField("join") or bool(first.register.request_id)
    return Retry.IF_TRANSIENT if is_safe else Retry.IF_NOT_RECEIVED
