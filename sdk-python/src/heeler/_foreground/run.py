"""Runs a command in the foreground: spawns it, attaches, and ends it with its caller.

spawn ──> attach ──> output … ──> AttachEnded ──> RunResult
  │          │
  └──────────┴── the caller is cancelled, or fails: cancel or detach the task
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heeler._calls.outcome import Outcome, outcome
from heeler._calls.task import cancel_and_check
from heeler._errors.base import HeelerError, TaskSurvivedError
from heeler._options.check import check_options
from heeler._options.reason import reason_of
from heeler._options.spawn import RunOptions, SpawnOptions
from heeler._options.time import Span
from heeler._streams.output import Chunk
from heeler.v1 import AttachEnded, BackgroundTask, SpawnNotice
from heeler.v1.enums import AttachEndReason, DisconnectAction, OutputStream

if TYPE_CHECKING:
    from heeler._calls.task import Task


@dataclass(frozen=True)
class RunResult:
    """The end of a run, and the output up to it."""

    task: BackgroundTask
    """The task at the end of the run. It is live unless `reason` is FINISHED."""
    reason: AttachEndReason
    """The reason why the run ended."""
    stdout: bytes
    """Empty if `on_output` got the output, as is `stderr`."""
    stderr: bytes
    notices: Sequence[SpawnNotice]
    """The differences between the request and the task, with their reasons."""

    @property
    def outcome(self) -> Outcome | None:
        """The end of the leader. None: it runs on in the background."""
        return outcome(self.task)

    @property
    def detached(self) -> bool:
        """True if the command runs on in the background with its leader."""
        return self.reason == AttachEndReason.DETACHED


@dataclass(frozen=True)
class OnCancel:
    """The treatment of the command when its caller is cancelled or fails."""

    detach: bool
    reason: str
    """The reason for a cancellation or an exception without a message."""

    def spawn_options(self, given: RunOptions) -> SpawnOptions:
        """Returns the options of the task. A caller that is killed has the same effect."""
        check_options("run", given, RunOptions)
        options: SpawnOptions = {"foreground": True, **given}
        if self.detach:
            options.setdefault("on_disconnect", DisconnectAction.DETACH)
        return options

    async def apply(self, task: Task, cause: BaseException) -> None:
        """Cancels or detaches the task.

        If the daemon cannot be reached, the caller still gets the cause; then `on_disconnect` of
        the task applies.
        """
        name = type(cause).__name__
        reason = reason_of(cause, self.reason or f"the caller of run was ended by {name}")
        try:
            if self.detach:
                await task.detach(reason=reason)
            else:
                await cancel_and_check(task, reason)
        except TaskSurvivedError:
            raise
        except HeelerError:
            pass


class OutputCollector:
    """Collects the output of each stream, and makes the result of a run."""

    def __init__(self) -> None:
        self._written: dict[OutputStream, list[bytes]] = {}

    def add(self, chunk: Chunk) -> None:
        """Adds a piece of output. A gap adds nothing."""
        self._written.setdefault(chunk.stream, []).append(chunk.data)

    def result(self, ended: AttachEnded, notices: Sequence[SpawnNotice]) -> RunResult:
        """Returns the result of the run."""
        out, err = (
            b"".join(self._written.get(stream, ()))
            for stream in (OutputStream.STDOUT, OutputStream.STDERR)
        )
        return RunResult(ended.task, AttachEndReason(ended.reason), out, err, notices)


async def run(
    spawn: Callable[[], Awaitable[Task]],
    on_output: Callable[[Chunk], object] | None,
    on_cancel: OnCancel,
    give_up_after: Span | None,
) -> RunResult:
    """Runs the command that `spawn` starts, as Client.run describes."""
    task = await spawn_or_cancel(spawn, on_cancel)
    collector = OutputCollector()
    take = collector.add if on_output is None else on_output
    # A command that was detached in the meantime is not followed.
    async with task.attach(foreground_only=True, give_up_after=give_up_after) as items:
        try:
            async for item in items:
                if isinstance(item, Chunk):
                    taken = take(item)
                    if inspect.isawaitable(taken):
                        await taken
                elif isinstance(item, AttachEnded):
                    return collector.result(item, task.notices)
        except BaseException as cause:
            await on_cancel.apply(task, cause)
            raise
    raise AssertionError("an attachment ends with AttachEnded or an error")


async def spawn_or_cancel(spawn: Callable[[], Awaitable[Task]], on_cancel: OnCancel) -> Task:
    """Spawns the task. If the caller is cancelled during the call, the task is not left behind."""
    spawning = asyncio.ensure_future(spawn())
    try:
        return await asyncio.shield(spawning)
    except asyncio.CancelledError as cause:
        await asyncio.wait([spawning])
        if not spawning.cancelled() and spawning.exception() is None:
            await on_cancel.apply(spawning.result(), cause)
        raise
