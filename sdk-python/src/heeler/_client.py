"""The client: one connection, and a method for every call of the service.

It adds typed errors and repetition to the generated stub, and nothing else: what the calls give are
the contract's own messages.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from signal import Signals
from typing import TYPE_CHECKING, TypeVar, cast

import grpc

from heeler import _time
from heeler._address import Address
from heeler._attach import Attachment
from heeler._credentials import BearerChannel
from heeler._filter import Filter, TaskRef, id_of
from heeler._output import Chunk
from heeler._pages import Pages
from heeler._repeat import Repeat, repeating
from heeler._run import Farewell, RunResult, run
from heeler._spawn import Command, RunOptions, SpawnOptions, signal_name, spawn_request
from heeler._task import Task
from heeler._time import Span
from heeler._watch import Watch
from heeler.v1 import (
    AttachRequest,
    BackgroundTask,
    Bookmark,
    CancelRequest,
    CancelResponse,
    DetachRequest,
    DetachResponse,
    InspectRequest,
    InspectResponse,
    ListQueuesRequest,
    ListQueuesResponse,
    ListRequest,
    ListResponse,
    ReadOutputRequest,
    ReadOutputResponse,
    RemoveRequest,
    RemoveResponse,
    ShutdownRequest,
    ShutdownResponse,
    TaskIds,
    UpdateQueueRequest,
    UpdateQueueResponse,
    WaitRequest,
    WaitResponse,
    WatchEventsRequest,
)
from heeler.v1.background_tasks_pb2_grpc import BackgroundTasksStub
from heeler.v1.enums import (
    CancelMode,
    OutputView,
    ShutdownTasks,
    TaskEventType,
    WaitCondition,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from heeler.v1.background_tasks_pb2_grpc import BackgroundTasksAsyncStub

T = TypeVar("T")


class Client:
    """A connection to a daemon, made by `heeler.connect`; it comes back by itself when it breaks.

    Calls that find the daemon away or restarting are repeated, with growing delays, for
    `retry_for` seconds. A caller ends any of them as asyncio has it, by `asyncio.timeout` or by
    cancelling its own task; that ends the call, and never a background task.
    """

    def __init__(
        self,
        channel: grpc.aio.Channel,
        address: Address,
        retry_for: float,
        token: str | None = None,
    ) -> None:
        self._channel = channel
        calls = channel if token is None else BearerChannel(channel, token)
        self._stub = BackgroundTasksStub(cast(grpc.aio.Channel, calls))
        self._address = address
        self._retry_for = retry_for
        self._closed = False

    @property
    def address(self) -> Address:
        """Where the daemon is."""
        return self._address

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    @property
    def stub(self) -> BackgroundTasksAsyncStub:
        """The generated stub, on the same connection: no repetition, no typed errors."""
        return self._stub

    async def close(self) -> None:
        """Ends the connection, and every call and watch that is on it."""
        self._closed = True
        await self._channel.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def task(self, task: TaskRef) -> Task:
        """The handle of a task. Nothing is asked: the id may be unknown."""
        return Task(self, id_of(task))

    async def spawn(self, command: Command, **options: Unpack[SpawnOptions]) -> Task:
        """Starts a task and returns when its leader runs, or at once if it has to wait its turn.

        `command` is a script for a shell if it is a string, else a program and its arguments, run
        as they are. The options are described in SpawnOptions. What the daemon did differently
        from what was asked for is in `Task.notices`.
        """
        request = spawn_request(command, **options)
        repeat = Repeat.ALWAYS if request.request_id else Repeat.IF_UNHEARD
        answer = await self._call(lambda: self._stub.Spawn(request), repeat)
        return Task(self, answer.task.id, answer)

    async def run(
        self,
        command: Command,
        *,
        on_output: Callable[[Chunk], object] | None = None,
        detach_on_cancel: bool = False,
        give_up_after: Span | None = None,
        **options: Unpack[RunOptions],
    ) -> RunResult:
        """Runs a command in the foreground, and returns when the caller is released.

        That is when the command is over; when its leader has exited and others of its tree live on;
        or when it was detached, by somebody or by its `foreground_timeout`, which is 60 s unless it
        is given. Its output is in the result or, with `on_output`, given to that chunk by chunk
        and not kept; what it returns is awaited if it can be.

        Unlike other calls, this one is the command's owner: cancelling the caller cancels the
        command, as does an exception of `on_output`, and ends when nothing of it is left. With
        `detach_on_cancel` the command goes on in the background instead. A caller that is killed
        is one that is gone, for which `on_holder_gone` says what follows: the same, unless it is
        given. A daemon that restarts is waited for, without end or for `give_up_after`.
        """
        farewell = Farewell.DETACH if detach_on_cancel else Farewell.CANCEL
        spawn = partial(self.spawn, command, **farewell.options(options))
        return await run(spawn, on_output, farewell, give_up_after)

    def attach(
        self,
        task: TaskRef,
        *,
        offset: int | None = None,
        tail_bytes: int | None = None,
        foreground_only: bool = False,
        give_up_after: Span | None = None,
    ) -> Attachment:
        """Holds a foreground task and gives its output from some place on; ends with the release.

        A task in the background is followed until its leader exits, and held by nobody; with
        `foreground_only` it releases the caller at once, behind the output there is. A daemon
        that restarts is waited for, without end or for `give_up_after`.
        """
        _at_most_one(offset=offset, tail_bytes=tail_bytes)
        request = AttachRequest(task_id=id_of(task), foreground_only=foreground_only)
        if tail_bytes is not None:
            request.tail_bytes = tail_bytes
        else:
            request.offset = offset or 0
        return Attachment(self, request, _patience(give_up_after))

    async def detach(
        self,
        task: TaskRef | None = None,
        *,
        session: str | None = None,
        timeout: Span | None = None,
        reason: str = "",
        actor: str = "",
    ) -> DetachResponse:
        """Turns a foreground task, or all of a session's, into background ones: one of the two.

        The same processes go on with all earlier output, and whoever holds them is released.
        `timeout` is how long they may run from here on. One that is in the background or over
        already is no error: the result says so.
        """
        _at_most_one(task=task, session=session)
        request = DetachRequest(timeout=_time.to_optional(timeout), reason=reason, actor=actor)
        if task is not None:
            request.task_id = id_of(task)
        elif session is not None:
            request.session_id = session
        return await self._call(lambda: self._stub.Detach(request))

    async def cancel(
        self,
        task: TaskRef | None = None,
        *,
        session: str | None = None,
        matching: Filter | None = None,
        force: bool = False,
        grace: Span | None = None,
        signal: str | Signals = "",
        reason: str = "",
        actor: str = "",
        wait: bool = True,
        cascade: bool = False,
    ) -> CancelResponse:
        """Stops a task, a session's tasks, or those that match a filter: one of the three.

        First the stop signal, then the grace, then a kill of the whole tree; with `force` the kill
        at once. The answer comes when every tree is proven empty, or without `wait` as soon as the
        intent is durable. `cascade` also stops what the targets have spawned, and theirs.
        """
        _at_most_one(task=task, session=session, matching=matching)
        request = CancelRequest(
            filter=None if matching is None else matching.message(),
            mode=CancelMode.FORCE if force else CancelMode.GRACEFUL,
            grace=_time.to_optional(grace),
            signal=signal_name(signal),
            reason=reason,
            actor=actor,
            wait=wait,
            cascade=cascade,
        )
        if task is not None:
            request.task_id = id_of(task)
        elif session is not None:
            request.session_id = session
        return await self._call(lambda: self._stub.Cancel(request))

    def list(
        self, filter: Filter | None = None, *, include_finished: bool = False, page_size: int = 0
    ) -> Pages[str, BackgroundTask]:
        """Every task that matches, page after page: live ones first, then newest first."""

        async def fetch(token: str) -> tuple[Iterable[BackgroundTask], str | None]:
            page = await self.list_page(
                filter, include_finished=include_finished, page_size=page_size, page_token=token
            )
            return page.tasks, page.next_page_token or None

        return Pages("", fetch)

    async def list_page(
        self,
        filter: Filter | None = None,
        *,
        include_finished: bool = False,
        page_size: int = 0,
        page_token: str = "",
    ) -> ListResponse:
        """One page of tasks, the revision at which it was true, and the server's own facts."""
        request = ListRequest(
            filter=None if filter is None else filter.message(),
            include_finished=include_finished,
            page_size=page_size,
            page_token=page_token,
        )
        return await self._call(lambda: self._stub.List(request))

    async def inspect(
        self, task: TaskRef, *, output_tail_bytes: int | None = None
    ) -> InspectResponse:
        """One task whole, with its processes, its resource use and the end of its output."""
        request = InspectRequest(task_id=id_of(task), output_tail_bytes=output_tail_bytes)
        return await self._call(lambda: self._stub.Inspect(request))

    def watch(
        self,
        *,
        after: int | Bookmark | None = None,
        initial_state: bool = False,
        filter: Filter | None = None,
        types: Iterable[TaskEventType.ValueType] = (),
        bookmark_interval: Span | None = None,
        give_up_after: Span | None = None,
    ) -> Watch:
        """Every event from a point on, across restarts of the daemon.

        `after` is a revision, 0 for the first that there is record of, or a Bookmark that was kept;
        None means from now. With `initial_state` every live task comes first. The watch ends with
        an error once the daemon has been away for `give_up_after`; by default it is waited for
        without end.
        """
        request = WatchEventsRequest(
            initial_state=initial_state,
            filter=None if filter is None else filter.message(),
            types=types,
            bookmark_interval=_time.to_optional(bookmark_interval),
        )
        if isinstance(after, Bookmark):
            request.after_revision, request.state_id = after.revision, after.state_id
        elif after is not None:
            request.after_revision = after
        return Watch(self, request, _patience(give_up_after))

    async def wait(
        self,
        *tasks: TaskRef,
        session: str = "",
        count: int | None = None,
        until: WaitCondition.ValueType = WaitCondition.UNSPECIFIED,
        timeout: Span | None = None,
    ) -> WaitResponse:
        """Waits for all of these tasks, for `count` of them, or for all of a session.

        The answer says whether the condition is met or the timeout came first. The timeout counts
        across restarts of the daemon. Ending a wait, however it ends, ends no task.
        """
        request = WaitRequest(
            task_ids=map(id_of, tasks),
            session_id=session,
            until=until,
            count=count,
            timeout=_time.to_optional(timeout),
        )
        begun, seconds = time.monotonic(), None if timeout is None else _time.to_seconds(timeout)

        def attempt() -> Awaitable[WaitResponse]:
            passed = time.monotonic() - begun
            # A timeout that cannot be used is for the daemon to refuse.
            if seconds is not None and seconds > 0:
                request.timeout.CopyFrom(_time.to_proto(max(0.0, seconds - passed)))
            return self._stub.Wait(request)

        return await self._call(attempt)

    async def read_output(
        self,
        task: TaskRef,
        *,
        offset: int | None = None,
        tail_bytes: int | None = None,
        max_bytes: int = 0,
        wait: Span | None = None,
        view: OutputView.ValueType = OutputView.UNSPECIFIED,
    ) -> ReadOutputResponse:
        """One piece of a task's output; `Task.output` and `Task.lines` follow it."""
        _at_most_one(offset=offset, tail_bytes=tail_bytes)
        request = ReadOutputRequest(
            task_id=id_of(task),
            max_bytes=max_bytes,
            wait=_time.to_optional(wait),
            view=view,
        )
        if offset is not None:
            request.offset = offset
        elif tail_bytes is not None:
            request.tail_bytes = tail_bytes
        return await self.read_output_request(request)

    async def read_output_request(self, request: ReadOutputRequest) -> ReadOutputResponse:
        """As read_output, for a request that is made already."""
        return await self._call(lambda: self._stub.ReadOutput(request))

    async def remove(self, *tasks: TaskRef, finished: Filter | None = None) -> RemoveResponse:
        """Forgets these tasks, all or none of them, or every finished one that matches."""
        _at_most_one(tasks=tasks or None, finished=finished)
        request = RemoveRequest(
            tasks=TaskIds(task_ids=map(id_of, tasks)) if tasks else None,
            finished=None if finished is None else finished.message(),
        )
        return await self._call(lambda: self._stub.Remove(request), Repeat.IF_UNHEARD)

    async def update_queue(
        self, name: str, *, slots: int | None = None, paused: bool | None = None
    ) -> UpdateQueueResponse:
        """Changes a queue: how many of its tasks run at a time, whether it lets any begin.

        What is None stays as it is, and what runs is not touched. It need not have been used yet.
        """
        request = UpdateQueueRequest(name=name, slots=slots, paused=paused)
        return await self._call(lambda: self._stub.UpdateQueue(request))

    async def list_queues(self) -> ListQueuesResponse:
        """The queues that have live tasks, or settings that differ from the defaults, by name."""
        return await self._call(lambda: self._stub.ListQueues(ListQueuesRequest()))

    async def shutdown(
        self,
        *,
        stop_tasks: bool = False,
        grace: Span | None = None,
        reason: str = "",
        actor: str = "",
    ) -> ShutdownResponse:
        """Ends the daemon; its tasks run on, or are stopped and proven gone.

        The answer comes as it begins to close: it is gone a moment later.
        """
        request = ShutdownRequest(
            tasks=ShutdownTasks.STOP if stop_tasks else ShutdownTasks.LEAVE_RUNNING,
            grace=_time.to_optional(grace),
            reason=reason,
            actor=actor,
        )
        return await self._call(lambda: self._stub.Shutdown(request), Repeat.NEVER)

    async def _call(self, attempt: Callable[[], Awaitable[T]], repeat: Repeat = Repeat.ALWAYS) -> T:
        return await repeating(self, attempt, repeat, self._retry_for)


def _at_most_one(**given: object) -> None:
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise ValueError(f"only one of {' and '.join(names)} can be given")


def _patience(give_up_after: Span | None) -> float | None:
    return None if give_up_after is None else _time.to_seconds(give_up_after)
