"""The client: a method for every call of the service. The answers are the contract's messages."""

from __future__ import annotations

import time
from collections.abc import (
    Awaitable,
    Callable,
    Iterable,
    Sequence,
)
from functools import partial
from signal import Signals
from typing import TYPE_CHECKING

from heeler._calls.pages import Pages
from heeler._calls.retry import Retry
from heeler._calls.session import Session
from heeler._calls.task import Task
from heeler._calls.workers import WorkerCalls
from heeler._foreground.attach import Attachment
from heeler._foreground.run import OnCancel, RunResult, run
from heeler._options.cancel import CancelOptions
from heeler._options.check import check_options
from heeler._options.fields import TaskRef, id_of, signal_name
from heeler._options.filter import Filter, select, to_message
from heeler._options.spawn import Command, RunOptions, SpawnOptions, spawn_request
from heeler._options.time import (
    Span,
    Time,
    to_duration,
    to_optional_duration,
    to_optional_seconds,
    to_optional_timestamp,
    to_seconds,
)
from heeler._options.words import to_number
from heeler._streams.follow import Follow
from heeler._streams.output import Chunk
from heeler._streams.watch import Watch
from heeler.v1 import (
    AttachRequest,
    BackgroundTask,
    Bookmark,
    CancelRequest,
    CancelResult,
    DetachRequest,
    DetachResult,
    FollowOutputRequest,
    ForcedStop,
    HeadAndTail,
    InspectRequest,
    InspectResponse,
    ListQueuesRequest,
    ListQueuesResponse,
    ListRequest,
    ListResponse,
    ListSessionsRequest,
    ListSessionsResponse,
    OutputCursor,
    OutputFilter,
    OutputPattern,
    OutputSearch,
    ReadOutputRequest,
    ReadOutputResponse,
    RemoveRequest,
    RemoveResponse,
    ResizeTerminalRequest,
    ResizeTerminalResponse,
    SessionInfo,
    ShutdownRequest,
    ShutdownResponse,
    StopPolicy,
    UpdateQueueRequest,
    UpdateQueueResponse,
    UpdateTaskRequest,
    UpdateTaskResponse,
    WaitRequest,
    WaitResponse,
    WatchEventsRequest,
    WriteInputRequest,
    WriteInputResponse,
)
from heeler.v1.enums import (
    FollowUntil,
    FollowUntilWord,
    OutputView,
    OutputViewWord,
    ShutdownTasks,
    ShutdownTasksWord,
    TaskEventType,
    TaskEventTypeWord,
    WaitCondition,
    WaitConditionWord,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Client(WorkerCalls):
    """A connection to a daemon, made by `heeler.connect`. It reconnects by itself.

    Calls that find the daemon away or restarting are repeated, with growing delays, for
    `retry_for` seconds. `asyncio.timeout`, or cancelling the calling task, ends a call. It never
    ends a background task, except for `run`.

    Calls that select tasks take them as arguments, as a `filter`, or as both: then the filter is
    narrowed to the given tasks.
    """

    def task(self, task: TaskRef) -> Task:
        """Returns the handle of a task. Makes no call: the id may be unknown."""
        return Task(self, id_of(task))

    def session(self, session_id: str) -> Session:
        """Returns the handle of a session. Makes no call: the session may have no task."""
        return Session(self, session_id)

    async def spawn(self, command: Command, **options: Unpack[SpawnOptions]) -> Task:
        """Starts a task and returns when its leader runs, or at once if the task is QUEUED.

        A string is a script for a shell; a sequence is a program and its arguments, run without a
        shell. SpawnOptions describes the options. `Task.notices` has the differences between the
        request and the task.
        """
        request = spawn_request(command, **options)
        retry = Retry.IF_TRANSIENT if request.request_id else Retry.IF_NOT_RECEIVED
        answer = await self._call(self._raw.Spawn, request, retry)
        return Task(self, answer.task.id, answer)

    async def run(
        self,
        command: Command,
        *,
        on_output: Callable[[Chunk], object] | None = None,
        detach_on_cancel: bool = False,
        cancel_reason: str = "",
        give_up_after: Span | None = None,
        **options: Unpack[RunOptions],
    ) -> RunResult:
        """Runs a command in the foreground and returns when it is out of the foreground.

        That is when the command is finished, when its leader has exited and orphans live on, or
        when it was detached, by a client or by `foreground_timeout` (60 s by default). The result
        has the output. With `on_output`, that function gets it chunk by chunk instead; if it
        returns an awaitable, that is awaited.

        Unlike other calls, this one ends the task: cancelling the caller, or an exception of
        `on_output`, cancels the command and returns when its tree is empty. If the kill has
        survivors, it raises TaskSurvivedError. With `detach_on_cancel` the command continues in
        the background instead. The message of the cancellation (`task.cancel(message)`) or of the
        exception is the reason kept with the task; `cancel_reason` is for those without one.

        If the caller is killed, `on_disconnect` applies, with the same effect by default. A daemon
        that restarts is waited for, without limit or for `give_up_after`.
        """
        on_cancel = OnCancel(detach_on_cancel, cancel_reason)
        spawn = partial(self.spawn, command, **on_cancel.spawn_options(options))
        return await run(spawn, on_output, on_cancel, give_up_after)

    def attach(
        self,
        task: TaskRef,
        *,
        offset: int | None = None,
        tail_bytes: int | None = None,
        foreground_only: bool = False,
        view: OutputViewWord = OutputView.UNSPECIFIED,
        give_up_after: Span | None = None,
    ) -> Attachment:
        """Attaches to a task and streams its output, from an offset or its last bytes.

        A background task is followed until its leader exits. With `foreground_only` the stream of
        a background task ends after the present output. A daemon that restarts is waited for,
        without limit or for `give_up_after`.
        """
        _at_most_one(offset=offset, tail_bytes=tail_bytes)
        request = AttachRequest(
            task_id=id_of(task),
            foreground_only=foreground_only,
            view=to_number("view", OutputView, view),
        )
        if tail_bytes is not None:
            request.tail_bytes = tail_bytes
        else:
            request.offset = offset or 0
        return Attachment(self, request, to_optional_seconds(give_up_after))

    async def detach(
        self,
        *tasks: TaskRef,
        filter: Filter | None = None,
        timeout: Span | None = None,
        reason: str = "",
        actor: str = "",
    ) -> Sequence[DetachResult]:
        """Turns foreground tasks into background tasks: the same processes, all earlier output.

        Every Attach on them ends. `timeout` replaces the timeout of the tasks from here on. A task
        that is in the background or finished is no error: its result says so.
        """
        request = DetachRequest(
            filter=select(tasks, filter),
            timeout=to_optional_duration(timeout),
            reason=reason,
            actor=actor,
        )
        return (await self._call(self._raw.Detach, request)).results

    async def cancel(
        self,
        *tasks: TaskRef,
        filter: Filter | None = None,
        force: bool = False,
        grace: Span | None = None,
        soft_grace: Span | None = None,
        signal: str | Signals = "",
        reason: str = "",
        actor: str = "",
        wait: bool = True,
        cascade: bool = False,
    ) -> Sequence[CancelResult]:
        """Stops tasks: the stop signal, the grace, then a kill of the whole tree.

        A worker that listens has its `soft_grace` before the signal. `grace`, `soft_grace` and
        `signal` override the policy of the task; `force` kills at once. The answer
        comes when every tree is proven empty, or after 10 s of killing with the survivors in
        `task.stop.proof`; the kill goes on. Without `wait` it comes as soon as the intent is
        durable. `cascade` also stops the tasks that the selected tasks have spawned, and theirs.
        There is a result for each task.
        """
        request = CancelRequest(
            filter=select(tasks, filter), reason=reason, actor=actor, wait=wait, cascade=cascade
        )
        if force:
            _at_most_one(force=force, grace=grace, soft_grace=soft_grace, signal=signal or None)
            request.force.CopyFrom(ForcedStop())
        elif grace is not None or soft_grace is not None or signal:
            stop = StopPolicy(
                grace=to_optional_duration(grace),
                soft_grace=to_optional_duration(soft_grace),
                signal=signal_name(signal),
            )
            request.graceful.CopyFrom(stop)
        return (await self._call(self._raw.Cancel, request)).results

    async def cancel_background_task(
        self, task: TaskRef, **options: Unpack[CancelOptions]
    ) -> CancelResult:
        """Stops one task, as `cancel` does. A finished task is no error: the result says so."""
        check_options("cancel_background_task", options, CancelOptions)
        wanted = id_of(task)
        # With `cascade` there are results of other tasks as well.
        return next(
            result for result in await self.cancel(wanted, **options) if result.task.id == wanted
        )

    def list(
        self,
        filter: Filter | None = None,
        *,
        include_finished: bool = False,
        include_finished_foreground: bool = False,
        page_size: int = 0,
    ) -> Pages[str, BackgroundTask]:
        """Returns an iterator over all pages of `list_page`."""

        async def fetch(token: str) -> tuple[Iterable[BackgroundTask], str | None]:
            page = await self.list_page(
                filter,
                include_finished=include_finished,
                include_finished_foreground=include_finished_foreground,
                page_size=page_size,
                page_token=token,
            )
            return page.tasks, page.next_page_token or None

        return Pages("", fetch)

    async def list_page(
        self,
        filter: Filter | None = None,
        *,
        include_finished: bool = False,
        include_finished_foreground: bool = False,
        include_ports: bool = False,
        page_size: int = 0,
        page_token: str = "",
    ) -> ListResponse:
        """Returns one page of tasks, live ones first, then newest first.

        Tasks that finished in the foreground also need `include_finished_foreground`, unless the
        filter names them. With `include_ports` the answer has the ports on which live tasks
        listen. It also has the revision at which it was true, and the server.
        """
        request = ListRequest(
            filter=to_message(filter),
            include_finished=include_finished,
            include_finished_foreground=include_finished_foreground,
            include_ports=include_ports,
            page_size=page_size,
            page_token=page_token,
        )
        return await self._call(self._raw.List, request)

    async def inspect(
        self,
        task: TaskRef,
        *,
        output_tail_bytes: int | None = None,
        block_count: int | None = None,
        include_screen: bool = False,
    ) -> InspectResponse:
        """Returns one task with its processes, its resource use, its latest blocks and output.

        With `include_screen` also the text on the screen of its terminal.
        """
        request = InspectRequest(
            task_id=id_of(task),
            output_tail_bytes=output_tail_bytes,
            block_count=block_count,
            include_screen=include_screen,
        )
        return await self._call(self._raw.Inspect, request)

    def watch_events(
        self,
        *,
        after: int | Bookmark | None = None,
        initial_state: bool = False,
        filter: Filter | None = None,
        types: Iterable[TaskEventTypeWord] = (),
        bookmark_interval: Span | None = None,
        summaries: bool = False,
        own_session: str | None = None,
        reattach_window: Span | None = None,
        give_up_after: Span | None = None,
    ) -> Watch:
        """Streams every event after a point, then live, across restarts of the daemon.

        `after` is a revision (0: every event that is kept) or a Bookmark that you stored. None:
        from now on. With `initial_state` every live task comes first. The first Bookmark means
        that the stream is established: no later event is missed. With `summaries` an ENDED event
        tells the end in words. A daemon that is away is waited for, without limit or for
        `give_up_after`.

        With `own_session` this client is an owner of that session as long as the stream lasts,
        from its first item on. When the last owner is gone and none comes back within
        `reattach_window` (10 s by default), the live tasks of the session are cancelled.
        """
        if own_session is None and reattach_window is not None:
            raise ValueError("reattach_window needs own_session")
        request = WatchEventsRequest(
            initial_state=initial_state,
            filter=to_message(filter),
            types=[to_number("types", TaskEventType, word) for word in types],
            bookmark_interval=to_optional_duration(bookmark_interval),
            summaries=summaries,
        )
        if own_session is not None:
            request.own_session.session_id = own_session
            if reattach_window is not None:
                request.own_session.reattach_window.CopyFrom(to_duration(reattach_window))
        _set_position(request, after)
        return Watch(self, request, to_optional_seconds(give_up_after))

    async def wait(
        self,
        *tasks: TaskRef,
        filter: Filter | None = None,
        count: int | None = None,
        until: WaitConditionWord = WaitCondition.UNSPECIFIED,
        match: OutputSearch | None = None,
        timeout: Span | None = None,
    ) -> WaitResponse:
        """Waits for all of the tasks, for `count` of them, or for all tasks of a session.

        With `until="matched"` it waits for a line of output that `match` describes. `satisfied` in
        the answer is False if the timeout came first, or if no such line can come any more. The
        timeout counts across restarts of the daemon. The end of a wait never ends a task.
        """
        request = WaitRequest(
            filter=select(tasks, filter),
            until=to_number("until", WaitCondition, until),
            count=count,
            match=match,
            timeout=to_optional_duration(timeout),
        )
        begun, seconds = time.monotonic(), None if timeout is None else to_seconds(timeout)

        def attempt(request: WaitRequest) -> Awaitable[WaitResponse]:
            passed = time.monotonic() - begun
            # The daemon refuses a bad timeout.
            if seconds is not None and seconds > 0:
                request.timeout.CopyFrom(to_duration(max(0.0, seconds - passed)))
            return self._raw.Wait(request)

        return await self._call(attempt, request)

    async def read_output(
        self,
        task: TaskRef,
        *,
        offset: int | None = None,
        tail_bytes: int | None = None,
        tail_lines: int | None = None,
        since: Time | None = None,
        head_and_tail: HeadAndTail | None = None,
        max_bytes: int = 0,
        max_lines: int = 0,
        wait: Span | None = None,
        filter: OutputFilter | None = None,
        view: OutputViewWord = OutputView.UNSPECIFIED,
    ) -> ReadOutputResponse:
        """Returns one piece of the output. `Task.output` and `Task.lines` follow it.

        It begins at an offset, at the last bytes or lines, or at a time, or has the beginning and
        the end. `filter` selects one stream, or lines by regular expressions.
        """
        _at_most_one(
            offset=offset,
            tail_bytes=tail_bytes,
            tail_lines=tail_lines,
            since=since,
            head_and_tail=head_and_tail,
        )
        request = ReadOutputRequest(
            task_id=id_of(task),
            since=to_optional_timestamp(since),
            head_and_tail=head_and_tail,
            max_bytes=max_bytes,
            max_lines=max_lines,
            wait=to_optional_duration(wait),
            filter=filter,
            view=to_number("view", OutputView, view),
        )
        _set_start(request, offset=offset, tail_bytes=tail_bytes, tail_lines=tail_lines)
        return await self._call(self._raw.ReadOutput, request)

    def follow_output(
        self,
        *,
        filter: Filter | None = None,
        cursors: Iterable[OutputCursor] = (),
        tail_bytes: int | None = None,
        tail_lines: int | None = None,
        since: Time | None = None,
        output_filter: OutputFilter | None = None,
        view: OutputViewWord = OutputView.UNSPECIFIED,
        include_finished: bool = False,
        until: FollowUntilWord = FollowUntil.UNSPECIFIED,
        after: int | Bookmark | None = None,
        bookmark_interval: Span | None = None,
        give_up_after: Span | None = None,
    ) -> Follow:
        """Streams the output of many tasks, also of tasks that start later.

        Each task comes as TaskBegun, then its output as TaskOutput, then TaskEnded. A daemon that
        restarts is waited for, without limit or for `give_up_after`.
        """
        _at_most_one(tail_bytes=tail_bytes, tail_lines=tail_lines, since=since)
        request = FollowOutputRequest(
            filter=to_message(filter),
            cursors=cursors,
            since=to_optional_timestamp(since),
            output_filter=output_filter,
            view=to_number("view", OutputView, view),
            include_finished=include_finished,
            until=to_number("until", FollowUntil, until),
            bookmark_interval=to_optional_duration(bookmark_interval),
        )
        _set_start(request, tail_bytes=tail_bytes, tail_lines=tail_lines)
        _set_position(request, after)
        return Follow(self, request, to_optional_seconds(give_up_after))

    async def write_input(
        self,
        task: TaskRef,
        data: bytes = b"",
        *,
        offset: int | None = None,
        close: bool = False,
        writer_id: str = "",
        take_over: bool = False,
        wait: Span | None = None,
    ) -> WriteInputResponse:
        """Writes to the stdin or the terminal of a task. The answer says how much was taken.

        With an offset, or without data, the call is safe to repeat. Without arguments it asks for
        the state of the input. `Task.input` returns a writer that makes such calls.
        """
        request = WriteInputRequest(
            task_id=id_of(task),
            data=data,
            offset=offset,
            close=close,
            writer_id=writer_id,
            take_over=take_over,
            wait=to_optional_duration(wait),
        )
        is_repeatable = offset is not None or not data
        retry = Retry.IF_TRANSIENT if is_repeatable else Retry.IF_NOT_RECEIVED
        return await self._call(self._raw.WriteInput, request, retry)

    async def resize_terminal(
        self, task: TaskRef, columns: int, rows: int
    ) -> ResizeTerminalResponse:
        """Changes the size of a task's terminal, from 1 to 1000 columns and rows."""
        request = ResizeTerminalRequest(task_id=id_of(task), columns=columns, rows=rows)
        return await self._call(self._raw.ResizeTerminal, request)

    async def update_task(
        self,
        task: TaskRef,
        *,
        set_patterns: Iterable[OutputPattern] = (),
        remove_patterns: Iterable[str] = (),
    ) -> UpdateTaskResponse:
        """Changes the patterns that are looked for in the output of a live task."""
        request = UpdateTaskRequest(
            task_id=id_of(task), set_patterns=set_patterns, remove_patterns=remove_patterns
        )
        return await self._call(self._raw.UpdateTask, request)

    async def remove(self, *tasks: TaskRef, filter: Filter | None = None) -> RemoveResponse:
        """Removes finished tasks and deletes their output.

        Tasks given by id are removed together or not at all. With a filter alone, every finished
        task that matches is removed; `Filter()` matches all.
        """
        request = RemoveRequest(filter=select(tasks, filter))
        return await self._call(self._raw.Remove, request, Retry.IF_NOT_RECEIVED)

    async def update_queue(
        self, name: str, *, slots: int | None = None, paused: bool | None = None
    ) -> UpdateQueueResponse:
        """Changes the settings of a queue. None leaves a setting unchanged.

        Running tasks are not affected. The queue need not exist yet.
        """
        request = UpdateQueueRequest(name=name, slots=slots, paused=paused)
        return await self._call(self._raw.UpdateQueue, request)

    async def list_queues(self) -> ListQueuesResponse:
        """Returns the queues with live tasks or settings other than the defaults, by name."""
        return await self._call(self._raw.ListQueues, ListQueuesRequest())

    def sessions(self) -> Pages[str, SessionInfo]:
        """Returns an iterator over the sessions that have live tasks, by id."""

        async def fetch(token: str) -> tuple[Iterable[SessionInfo], str | None]:
            page = await self.list_sessions(page_token=token)
            return page.sessions, page.next_page_token or None

        return Pages("", fetch)

    async def list_sessions(
        self, session_id: str = "", *, page_size: int = 0, page_token: str = ""
    ) -> ListSessionsResponse:
        """Returns a page of the sessions that have live tasks, by id; or the one that is named.

        `sessions` iterates over all.
        """
        request = ListSessionsRequest(
            session_id=session_id, page_size=page_size, page_token=page_token
        )
        return await self._call(self._raw.ListSessions, request)

    async def shutdown(
        self,
        *,
        tasks: ShutdownTasksWord = ShutdownTasks.UNSPECIFIED,
        grace: Span | None = None,
        reason: str = "",
        actor: str = "",
    ) -> ShutdownResponse:
        """Ends the daemon. Its tasks run on by default; ShutdownTasks.STOP stops them first.

        The answer comes when the daemon begins to close. It exits a moment later.
        """
        request = ShutdownRequest(
            tasks=to_number("tasks", ShutdownTasks, tasks),
            grace=to_optional_duration(grace),
            reason=reason,
            actor=actor,
        )
        return await self._call(self._raw.Shutdown, request, Retry.NEVER)


def _set_start(request: ReadOutputRequest | FollowOutputRequest, **start: int | None) -> None:
    """Sets the number that is given, if one is."""
    for name, value in start.items():
        if value is not None:
            setattr(request, name, value)


def _set_position(
    request: WatchEventsRequest | FollowOutputRequest, after: int | Bookmark | None
) -> None:
    if isinstance(after, Bookmark):
        request.after_revision, request.epoch = after.revision, after.epoch
    elif after is not None:
        request.after_revision = after


def _at_most_one(**given: object) -> None:
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise ValueError(f"only one of {' and '.join(names)} can be given")
