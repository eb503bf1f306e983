"""The handle of one task: its id and a client. Dropping it has no effect on the task."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from heeler._errors.base import TaskStillRunningError, TaskSurvivedError
from heeler._foreground.attach import Attachment
from heeler._options.cancel import CancelOptions
from heeler._options.check import check_options
from heeler._options.filter import Filter
from heeler._options.time import Span, to_optional_seconds
from heeler._streams.input import InputWriter
from heeler._streams.output import Lines, Output
from heeler._streams.watch import Watch
from heeler.v1 import (
    BackgroundTask,
    CancelResult,
    DetachResult,
    InspectResponse,
    SpawnNotice,
    SpawnResponse,
    TaskEvent,
)
from heeler.v1.enums import (
    OutputView,
    OutputViewWord,
    TaskEventType,
    WaitCondition,
    WaitConditionWord,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from heeler._calls.client import Client


class Task:
    """The handle of a task.

    As a context manager it is for work that must not outlive a block: at the end of the block the
    task is cancelled and its tree proven empty, or TaskSurvivedError is raised.
    """

    def __init__(self, client: Client, task_id: str, spawned: SpawnResponse | None = None) -> None:
        self._client = client
        self._id = task_id
        self._spawned = spawned

    @property
    def id(self) -> str:
        """The id of the task."""
        return self._id

    @property
    def spawned(self) -> SpawnResponse | None:
        """The answer of Spawn, with the first state. None if `spawn` did not make this handle."""
        return self._spawned

    @property
    def notices(self) -> Sequence[SpawnNotice]:
        """The differences between the request of Spawn and the task, with their reasons."""
        return () if self._spawned is None else tuple(self._spawned.notices)

    async def get(self) -> BackgroundTask:
        """Returns the present state."""
        answer = await self._client.wait(self._id, timeout=0)
        return [*answer.met, *answer.pending][0]

    async def wait(
        self,
        *,
        until: WaitConditionWord = WaitCondition.UNSPECIFIED,
        timeout: Span | None = None,
    ) -> BackgroundTask:
        """Waits until the task is finished, or OUT_OF_FOREGROUND, and returns its state.

        Raises TaskStillRunningError after the timeout, which counts across restarts of the daemon.
        The end of a wait never ends the task.
        """
        answer = await self._client.wait(self._id, until=until, timeout=timeout)
        if not answer.met:
            raise TaskStillRunningError(answer.pending[0])
        return answer.met[0]

    async def cancel(self, **options: Unpack[CancelOptions]) -> CancelResult:
        """Stops the task, as Client.cancel does. A finished task is no error."""
        check_options("Task.cancel", options, CancelOptions)
        return await self._client.cancel_background_task(self._id, **options)

    async def detach(
        self, *, timeout: Span | None = None, reason: str = "", actor: str = ""
    ) -> DetachResult:
        """Turns the task into a background task, as Client.detach does."""
        (result,) = await self._client.detach(self._id, timeout=timeout, reason=reason, actor=actor)
        return result

    def attach(
        self,
        offset: int = 0,
        *,
        tail_bytes: int | None = None,
        foreground_only: bool = False,
        view: OutputViewWord = OutputView.UNSPECIFIED,
        give_up_after: Span | None = None,
    ) -> Attachment:
        """Attaches to the task and streams its output, as Client.attach does."""
        return self._client.attach(
            self._id,
            offset=offset if tail_bytes is None else None,
            tail_bytes=tail_bytes,
            foreground_only=foreground_only,
            view=view,
            give_up_after=give_up_after,
        )

    async def inspect(self, *, output_tail_bytes: int | None = None) -> InspectResponse:
        """Returns the task with its processes, its resource use and the end of its output."""
        return await self._client.inspect(self._id, output_tail_bytes=output_tail_bytes)

    async def remove(self) -> None:
        """Removes the task, which must be finished, and deletes its output."""
        await self._client.remove(self._id)

    def events(self) -> TaskEvents:
        """Returns the events of the task, from the first that is kept to ENDED."""
        watch = self._client.watch_events(after=0, filter=Filter(tasks=[self._id]))
        return TaskEvents(self, watch)

    def output(
        self, offset: int = 0, *, tail_bytes: int | None = None, follow: bool = True
    ) -> Output:
        """Returns the output from an offset or its last bytes, by default to the end of the task.

        Without `follow` it stops at the present end.
        """
        return Output(self._client, self._id, offset, tail_bytes, follow=follow)

    def lines(
        self, offset: int = 0, *, tail_bytes: int | None = None, follow: bool = True
    ) -> Lines:
        """Returns the output as lines of text."""
        return Lines(self.output(offset, tail_bytes=tail_bytes, follow=follow))

    def input(
        self,
        *,
        writer_id: str | None = None,
        take_over: bool = False,
        give_up_after: Span | None = None,
    ) -> InputWriter:
        """Returns a writer to the stdin or the terminal of the task.

        The task needs the option `input` or `terminal`. Its input has one writer at a time: with
        `take_over` this one takes the place of another. A `writer_id` of your own is for a program
        that writes on after it was started again. A daemon that restarts is waited for, without
        limit or for `give_up_after`.
        """
        return InputWriter(
            self._client,
            self._id,
            writer_id=writer_id,
            take_over=take_over,
            give_up_after=to_optional_seconds(give_up_after),
        )

    async def resize(self, columns: int, rows: int) -> None:
        """Changes the size of the task's terminal."""
        await self._client.resize_terminal(self._id, columns=columns, rows=rows)

    async def __aenter__(self) -> Task:
        return self

    async def __aexit__(self, *_: object) -> None:
        await cancel_and_check(self)

    def __repr__(self) -> str:
        return f"Task({self._id!r})"


async def cancel_and_check(task: Task, reason: str = "") -> None:
    """Cancels the task and waits until its tree is empty, else raises TaskSurvivedError."""
    ended = (await task.cancel(reason=reason)).task
    if ended.stop.proof.HasField("survivors"):
        raise TaskSurvivedError(ended)


class TaskEvents(AsyncIterator[TaskEvent]):
    """The events of one task. It ends after ENDED."""

    def __init__(self, task: Task, watch: Watch) -> None:
        self._task = task
        self._watch = watch
        self._known = False

    async def __anext__(self) -> TaskEvent:
        if not self._known:
            # A watch with an unknown id would wait for ever.
            await self._task.get()
            self._known = True
        async for item in self._watch:
            if isinstance(item, TaskEvent):
                if item.type == TaskEventType.ENDED:
                    await self.aclose()
                return item
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Ends the stream."""
        await self._watch.aclose()
