"""The same client for programs without an event loop: every call blocks until it is answered.

Nothing is done here: each method runs the asyncio client's own on a thread in the background, with
the same arguments. What asyncio gives its callers, a deadline for any call, is `within` here.

    import heeler.sync

    with heeler.sync.connect() as client:
        task = client.spawn("make test", session="demo")
        print(task.wait().state)
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from heeler import _attach, _client, _connecting, _task, _thread, _time, _watch
from heeler._address import Address
from heeler._cursor import WatchItem
from heeler._filter import TaskRef
from heeler._hold import AttachItem
from heeler._output import Chunk
from heeler._run import Collector, Farewell, RunResult, leave, started
from heeler._spawn import Command, RunOptions
from heeler._time import Span
from heeler.v1 import Bookmark, Released, SpawnNotice, SpawnResponse

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Attachment", "Client", "Items", "Task", "Watch", "connect"]

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")
I = TypeVar("I")  # noqa: E741


class _Face(Generic[I]):
    """The sync face of something: that, and how long a call on it may take."""

    def __init__(self, inner: I, timeout: float | None) -> None:
        self._inner = inner
        self._timeout = timeout

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return _thread.run(work, self._timeout)


class Items(_Face[AsyncIterator[T]], Iterator[T]):
    """An iterator that blocks for the next item. A step that times out loses nothing."""

    def __next__(self) -> T:
        item = self._run(_step(self._inner))
        if item is _END:
            raise StopIteration
        return cast(T, item)

    def _until(self, deadline: float | None) -> Iterator[T]:
        """The same, with a deadline for all steps together, by the monotonic clock."""
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            item = _thread.run(_step(self._inner), left)
            if item is _END:
                return
            yield cast(T, item)

    def close(self) -> None:
        """Ends it, and the call behind it."""
        aclose = getattr(self._inner, "aclose", None)
        if aclose is not None:
            self._run(aclose())

    def __enter__(self: S) -> S:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_END = object()


async def _step(items: AsyncIterator[T]) -> T | object:
    return await anext(items, _END)


def _blocking(
    method: Callable[Concatenate[I, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[_Face[I], P], R]:
    @functools.wraps(method)
    def call(self: _Face[I], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._run(method(self._inner, *args, **kwargs))

    return call


def _iterating(
    method: Callable[Concatenate[I, P], AsyncIterator[R]],
) -> Callable[Concatenate[_Face[I], P], Items[R]]:
    @functools.wraps(method)
    def call(self: _Face[I], /, *args: P.args, **kwargs: P.kwargs) -> Items[R]:
        return Items(method(self._inner, *args, **kwargs), self._timeout)

    return call


class Watch(Items[WatchItem]):
    """As heeler.Watch."""

    @property
    def bookmark(self) -> Bookmark | None:
        """Where to go on after what was given so far."""
        return cast(_watch.Watch, self._inner).bookmark


class Attachment(Items[AttachItem]):
    """As heeler.Attachment."""

    @property
    def offset(self) -> int | None:
        """Where to go on after what was given so far; None: no output was."""
        return cast(_attach.Attachment, self._inner).offset

    @property
    def released(self) -> Released | None:
        """How the hold ended, once that was given."""
        return cast(_attach.Attachment, self._inner).released


def _attaching(
    method: Callable[Concatenate[I, P], _attach.Attachment],
) -> Callable[Concatenate[_Face[I], P], Attachment]:
    @functools.wraps(method)
    def call(self: _Face[I], /, *args: P.args, **kwargs: P.kwargs) -> Attachment:
        return Attachment(method(self._inner, *args, **kwargs), self._timeout)

    return call


class Task(_Face[_task.Task]):
    """As heeler.Task."""

    def within(self, timeout: Span) -> Task:
        """The same task, on which calls and steps end with TimeoutError after this long."""
        return Task(self._inner, _time.to_seconds(timeout))

    @property
    def id(self) -> str:
        """Its id."""
        return self._inner.id

    @property
    def spawned(self) -> SpawnResponse | None:
        """What Spawn answered. None for another handle."""
        return self._inner.spawned

    @property
    def notices(self) -> Sequence[SpawnNotice]:
        """What Spawn did differently from what was asked for, and why."""
        return self._inner.notices

    snapshot = _blocking(_task.Task.snapshot)
    wait = _blocking(_task.Task.wait)
    cancel = _blocking(_task.Task.cancel)
    attach = _attaching(_task.Task.attach)
    detach = _blocking(_task.Task.detach)
    inspect = _blocking(_task.Task.inspect)
    remove = _blocking(_task.Task.remove)
    events = _iterating(_task.Task.events)
    output = _iterating(_task.Task.output)
    lines = _iterating(_task.Task.lines)

    def __enter__(self) -> Task:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()

    def __repr__(self) -> str:
        return f"Task({self.id!r})"


def _spawning(
    method: Callable[Concatenate[I, P], Coroutine[Any, Any, _task.Task]],
) -> Callable[Concatenate[_Face[I], P], Task]:
    @functools.wraps(method)
    def call(self: _Face[I], /, *args: P.args, **kwargs: P.kwargs) -> Task:
        return Task(self._run(method(self._inner, *args, **kwargs)), self._timeout)

    return call


def _watching(
    method: Callable[Concatenate[I, P], _watch.Watch],
) -> Callable[Concatenate[_Face[I], P], Watch]:
    @functools.wraps(method)
    def call(self: _Face[I], /, *args: P.args, **kwargs: P.kwargs) -> Watch:
        return Watch(method(self._inner, *args, **kwargs), self._timeout)

    return call


class Client(_Face[_client.Client]):
    """As heeler.Client; any thread may use it."""

    @property
    def address(self) -> Address:
        """Where the daemon is."""
        return self._inner.address

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._inner.closed

    def within(self, timeout: Span) -> Client:
        """The same client, whose calls and steps end with TimeoutError after this long."""
        return Client(self._inner, _time.to_seconds(timeout))

    def task(self, task: TaskRef) -> Task:
        """The handle of a task. Nothing is asked: the id may be unknown."""
        return Task(self._inner.task(task), self._timeout)

    spawn = _spawning(_client.Client.spawn)

    def run(
        self,
        command: Command,
        *,
        on_output: Callable[[Chunk], object] | None = None,
        detach_on_cancel: bool = False,
        give_up_after: Span | None = None,
        **options: Unpack[RunOptions],
    ) -> RunResult:
        """As heeler.Client.run; `on_output` is called on the caller's own thread.

        What cancels the caller is an interrupt, an exception of `on_output`, or the deadline of
        `within`, which is for the run as a whole.
        """
        farewell = Farewell.DETACH if detach_on_cancel else Farewell.CANCEL
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        spawn = functools.partial(self._inner.spawn, command, **farewell.options(options))
        task = Task(self._run(started(spawn, farewell)), None)
        collector = Collector()
        take = collector.keep if on_output is None else on_output
        with task.attach(foreground_only=True, give_up_after=give_up_after) as items:
            try:
                for item in items._until(deadline):
                    if isinstance(item, Chunk):
                        take(item)
                    elif isinstance(item, Released):
                        return collector.result(item, task.notices)
            except BaseException:
                _thread.run(leave(task._inner, farewell))
                raise
        raise AssertionError("an attachment ends with its release or with an error")

    attach = _attaching(_client.Client.attach)
    detach = _blocking(_client.Client.detach)
    cancel = _blocking(_client.Client.cancel)
    list = _iterating(_client.Client.list)
    list_page = _blocking(_client.Client.list_page)
    inspect = _blocking(_client.Client.inspect)
    watch = _watching(_client.Client.watch)
    wait = _blocking(_client.Client.wait)
    read_output = _blocking(_client.Client.read_output)
    remove = _blocking(_client.Client.remove)
    update_queue = _blocking(_client.Client.update_queue)
    list_queues = _blocking(_client.Client.list_queues)
    shutdown = _blocking(_client.Client.shutdown)
    close = _blocking(_client.Client.close)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(
    address: str | Address | None = None,
    *,
    retry_for: Span = _connecting.RETRY_FOR,
    token: str | None = None,
    token_file: str | os.PathLike[str] | None = None,
    tls_ca: str | os.PathLike[str] | None = None,
) -> Client:
    """As heeler.connect; the client closes itself when used with `with`."""

    async def connected() -> _client.Client:
        return await _connecting.connect(
            address, retry_for=retry_for, token=token, token_file=token_file, tls_ca=tls_ca
        )

    return Client(_thread.run(connected()), None)
