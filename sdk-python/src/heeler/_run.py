"""A command in the foreground: started, held, and ended with its caller unless it was released."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from heeler._errors import HeelerError
from heeler._outcome import Outcome, outcome
from heeler._output import Chunk
from heeler._spawn import RunOptions, SpawnOptions
from heeler._time import Span
from heeler.v1 import BackgroundTask, Released, SpawnNotice
from heeler.v1.enums import HolderGoneAction, OutputStream, Placement, ReleaseReason

if TYPE_CHECKING:
    from heeler._task import Task


@dataclass(frozen=True)
class RunResult:
    """How a run ended, and what was written until then."""

    task: BackgroundTask
    """The task as it was then. It lives on unless `reason` is FINISHED."""
    reason: ReleaseReason.ValueType
    """Why the caller was released."""
    stdout: bytes
    """Empty if the output was given to `on_output`, as is `stderr`."""
    stderr: bytes
    notices: Sequence[SpawnNotice]
    """What was done differently from what was asked for, and why."""

    @property
    def outcome(self) -> Outcome | None:
        """How its leader ended; None: it goes on in the background."""
        return outcome(self.task)

    @property
    def detached(self) -> bool:
        """Whether it goes on in the background with its leader."""
        return self.reason == ReleaseReason.DETACHED


class Farewell(Enum):
    """What a caller that leaves before it is released does to the command."""

    CANCEL = auto()
    DETACH = auto()

    def options(self, given: RunOptions) -> SpawnOptions:
        """How the command is spawned: a caller that is killed is to mean the same."""
        options: SpawnOptions = {"placement": Placement.FOREGROUND, **given}
        if self is Farewell.DETACH:
            options.setdefault("on_holder_gone", HolderGoneAction.DETACH)
        return options


class Collector:
    """Puts together what a run gives: the output of each stream, and the result at its end."""

    def __init__(self) -> None:
        self._written: dict[OutputStream.ValueType, list[bytes]] = {}

    def keep(self, chunk: Chunk) -> None:
        """Keeps a piece of output."""
        self._written.setdefault(chunk.stream, []).append(chunk.data)

    def result(self, released: Released, notices: Sequence[SpawnNotice]) -> RunResult:
        """The result, now that there is one."""
        out, err = (
            b"".join(self._written.get(stream, ()))
            for stream in (OutputStream.STDOUT, OutputStream.STDERR)
        )
        return RunResult(released.task, released.reason, out, err, notices)


async def run(
    spawn: Callable[[], Awaitable[Task]],
    on_output: Callable[[Chunk], object] | None,
    farewell: Farewell,
    give_up_after: Span | None,
) -> RunResult:
    """As Client.run, which says what to spawn."""
    task = await started(spawn, farewell)
    collector = Collector()
    take = collector.keep if on_output is None else on_output
    # A command that somebody has detached by now is not followed in the background.
    async with task.attach(foreground_only=True, give_up_after=give_up_after) as items:
        try:
            async for item in items:
                if isinstance(item, Chunk):
                    taken = take(item)
                    if inspect.isawaitable(taken):
                        await taken
                elif isinstance(item, Released):
                    return collector.result(item, task.notices)
        except BaseException:
            await leave(task, farewell)
            raise
    raise AssertionError("an attachment ends with its release or with an error")


async def started(spawn: Callable[[], Awaitable[Task]], farewell: Farewell) -> Task:
    """Spawns; a caller that is cancelled meanwhile does not leave the command behind."""
    spawning = asyncio.ensure_future(spawn())
    try:
        return await asyncio.shield(spawning)
    except asyncio.CancelledError:
        with contextlib.suppress(Exception):
            await leave(await spawning, farewell)
        raise


async def leave(task: Task, farewell: Farewell) -> None:
    """What a caller does that was not released; the reason why it leaves is what it is told."""
    with contextlib.suppress(HeelerError):
        match farewell:
            case Farewell.CANCEL:
                await task.cancel(reason="the caller of run left")
            case Farewell.DETACH:
                await task.detach(reason="the caller of run left")
