"""A handle on one task: its id and a client. It owns nothing: dropping it does nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from signal import Signals
from typing import TYPE_CHECKING

from heeler._attach import Attachment
from heeler._errors import StillRunning
from heeler._filter import Filter
from heeler._output import Lines, Output
from heeler._time import Span
from heeler._watch import Watch
from heeler.v1 import (
    BackgroundTask,
    CancelResult,
    DetachResult,
    InspectResponse,
    ReadOutputRequest,
    SpawnNotice,
    SpawnResponse,
    TaskEvent,
)
from heeler.v1.enums import TaskEventType, WaitCondition

if TYPE_CHECKING:
    from heeler._client import Client


class Task:
    """A task, by its id.

    As a context manager it is for work that must not outlive a block: leaving the block cancels
    the task and waits for the proof that nothing of it is left.
    """

    def __init__(self, client: Client, task_id: str, spawned: SpawnResponse | None = None) -> None:
        self._client = client
        self._id = task_id
        self._spawned = spawned

    @property
    def id(self) -> str:
        """Its id."""
        return self._id

    @property
    def spawned(self) -> SpawnResponse | None:
        """What Spawn answered, with its first state and revision. None for other handles."""
        return self._spawned

    @property
    def notices(self) -> Sequence[SpawnNotice]:
        """What Spawn did differently from what was asked for, and why."""
        return () if self._spawned is None else tuple(self._spawned.notices)

    async def snapshot(self) -> BackgroundTask:
        """Its state now."""
        answer = await self._client.wait(self._id, timeout=0)
        return [*answer.met, *answer.pending][0]

    async def wait(
        self,
        *,
        until: WaitCondition.ValueType = WaitCondition.UNSPECIFIED,
        timeout: Span | None = None,
    ) -> BackgroundTask:
        """Waits until it is over, or RELEASED, and gives its state; StillRunning after the timeout.

        The timeout counts across restarts of the daemon. Ending a wait never ends the task.
        """
        answer = await self._client.wait(self._id, until=until, timeout=timeout)
        if not answer.met:
            raise StillRunning(answer.pending[0])
        return answer.met[0]

    async def cancel(
        self,
        *,
        force: bool = False,
        grace: Span | None = None,
        signal: str | Signals = "",
        reason: str = "",
        actor: str = "",
        wait: bool = True,
        cascade: bool = False,
    ) -> CancelResult:
        """Stops it, as Client.cancel. One that is over already is no error: the result says so."""
        answer = await self._client.cancel(
            self._id,
            force=force,
            grace=grace,
            signal=signal,
            reason=reason,
            actor=actor,
            wait=wait,
            cascade=cascade,
        )
        # With a cascade there are others; ours is the one with our id.
        return next(result for result in answer.results if result.task.id == self._id)

    async def detach(
        self, *, timeout: Span | None = None, reason: str = "", actor: str = ""
    ) -> DetachResult:
        """Turns it into a background task, as Client.detach."""
        answer = await self._client.detach(self._id, timeout=timeout, reason=reason, actor=actor)
        return answer.results[0]

    def attach(
        self,
        offset: int = 0,
        *,
        tail_bytes: int | None = None,
        foreground_only: bool = False,
        give_up_after: Span | None = None,
    ) -> Attachment:
        """Holds it, if it is in the foreground, and gives its output, as Client.attach."""
        return self._client.attach(
            self._id,
            offset=offset if tail_bytes is None else None,
            tail_bytes=tail_bytes,
            foreground_only=foreground_only,
            give_up_after=give_up_after,
        )

    async def inspect(self, *, output_tail_bytes: int | None = None) -> InspectResponse:
        """Shows it whole, with its processes, its resource use and the end of its output."""
        return await self._client.inspect(self._id, output_tail_bytes=output_tail_bytes)

    async def remove(self) -> None:
        """Forgets it and its output. It must be over."""
        await self._client.remove(self._id)

    def events(self) -> TaskEvents:
        """Its events, from the first that there is record of to its end."""
        watch = self._client.watch(after=0, filter=Filter(tasks=[self._id]))
        return TaskEvents(self, watch)

    def output(
        self, offset: int = 0, *, tail_bytes: int | None = None, follow: bool = True
    ) -> Output:
        """Its output from an offset on, or its last bytes; followed to its end if `follow`."""
        first = ReadOutputRequest(task_id=self._id)
        if tail_bytes is None:
            first.offset = offset
        else:
            first.tail_bytes = tail_bytes
        return Output(first, self._client.read_output_request, follow=follow)

    def lines(
        self, offset: int = 0, *, tail_bytes: int | None = None, follow: bool = True
    ) -> Lines:
        """As output, by lines of text."""
        return Lines(self.output(offset, tail_bytes=tail_bytes, follow=follow))

    async def __aenter__(self) -> Task:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.cancel()

    def __repr__(self) -> str:
        return f"Task({self._id!r})"


class TaskEvents(AsyncIterator[TaskEvent]):
    """The events of one task; over after its end."""

    def __init__(self, task: Task, watch: Watch) -> None:
        self._task = task
        self._watch = watch
        self._known = False

    async def __anext__(self) -> TaskEvent:
        if not self._known:
            # A watch of an unknown task would wait for ever for it to appear.
            await self._task.snapshot()
            self._known = True
        async for item in self._watch:
            if isinstance(item, TaskEvent):
                if item.type == TaskEventType.ENDED:
                    await self.aclose()
                return item
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Ends it."""
        await self._watch.aclose()
