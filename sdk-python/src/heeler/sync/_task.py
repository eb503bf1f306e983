"""The blocking face of a task handle."""

from __future__ import annotations

from collections.abc import Sequence

from heeler._calls import task as asyncio_task
from heeler._options.time import Span, to_seconds
from heeler.sync._face import Face, blocking, iterating, wrapping
from heeler.sync._input import InputFile
from heeler.sync._streams import Attachment
from heeler.v1 import SpawnNotice, SpawnResponse


class Task(Face[asyncio_task.Task]):
    """The blocking face of heeler.Task."""

    def within(self, timeout: Span) -> Task:
        """Returns the same task with a deadline: calls and steps raise TimeoutError after it."""
        return Task(self._inner, to_seconds(timeout))

    @property
    def id(self) -> str:
        """The id of the task."""
        return self._inner.id

    @property
    def spawned(self) -> SpawnResponse | None:
        """The answer of Spawn. None if `spawn` did not make this handle."""
        return self._inner.spawned

    @property
    def notices(self) -> Sequence[SpawnNotice]:
        """The differences between the request of Spawn and the task, with their reasons."""
        return self._inner.notices

    get = blocking(asyncio_task.Task.get)
    wait = blocking(asyncio_task.Task.wait)
    cancel = blocking(asyncio_task.Task.cancel)
    attach = wrapping(Attachment, asyncio_task.Task.attach)
    detach = blocking(asyncio_task.Task.detach)
    inspect = blocking(asyncio_task.Task.inspect)
    input = wrapping(InputFile, asyncio_task.Task.input)
    resize = blocking(asyncio_task.Task.resize)
    remove = blocking(asyncio_task.Task.remove)
    events = iterating(asyncio_task.Task.events)
    output = iterating(asyncio_task.Task.output)
    lines = iterating(asyncio_task.Task.lines)

    def __enter__(self) -> Task:
        return self

    def __exit__(self, *_: object) -> None:
        self._run(asyncio_task.cancel_and_check(self._inner))

    def __repr__(self) -> str:
        return f"Task({self.id!r})"
