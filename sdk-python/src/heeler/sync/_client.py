"""The blocking face of the client."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from heeler._calls import client as asyncio_client
from heeler._connection import connect as asyncio_connect
from heeler._connection.address import Address
from heeler._foreground.run import OnCancel, OutputCollector, RunResult, spawn_or_cancel
from heeler._options.fields import TaskRef
from heeler._options.spawn import Command, HostOptions, RunOptions, SpawnOptions
from heeler._options.time import Span, to_seconds
from heeler._streams.output import Chunk
from heeler._work.stop import record_stop
from heeler.sync import _thread
from heeler.sync._face import Face, blocking, iterating, wrapping
from heeler.sync._session import Session
from heeler.sync._streams import Attachment, Watch
from heeler.sync._task import Task
from heeler.sync._work import Body, Work
from heeler.v1 import AttachEnded, BackgroundTask

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Client(Face[asyncio_client.Client]):
    """The blocking face of heeler.Client. Any thread may use it."""

    @property
    def address(self) -> Address:
        """The address of the daemon."""
        return self._inner.address

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return self._inner.closed

    def within(self, timeout: Span) -> Client:
        """Returns the same client with a deadline: calls and steps raise TimeoutError after it."""
        return Client(self._inner, to_seconds(timeout))

    def task(self, task: TaskRef) -> Task:
        """Returns the handle of a task. Makes no call: the id may be unknown."""
        return Task(self._inner.task(task), self._timeout)

    def session(self, session_id: str) -> Session:
        """Returns the handle of a session. Makes no call: the session may have no task."""
        return Session(self, session_id)

    def spawn(self, command: Command, **options: Unpack[SpawnOptions]) -> Task:
        """Starts a task, as heeler.Client.spawn does."""
        return Task(self._run(self._inner.spawn(command, **options)), self._timeout)

    def run(
        self,
        command: Command,
        *,
        on_output: Callable[[Chunk], object] | None = None,
        detach_on_cancel: bool = False,
        cancel_reason: str = "",
        give_up_after: Span | None = None,
        **options: Unpack[RunOptions],
    ) -> RunResult:
        """Runs a command, as heeler.Client.run does. Calls `on_output` on the caller's thread.

        An interrupt, an exception of `on_output`, or the deadline of `within` for the whole run,
        cancels the command.
        """
        on_cancel = OnCancel(detach_on_cancel, cancel_reason)
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        spawn = functools.partial(self._inner.spawn, command, **on_cancel.spawn_options(options))
        task = Task(self._run(spawn_or_cancel(spawn, on_cancel)), None)
        collector = OutputCollector()
        take = collector.add if on_output is None else on_output
        with task.attach(foreground_only=True, give_up_after=give_up_after) as items:
            try:
                for item in items._until(deadline):
                    if isinstance(item, Chunk):
                        take(item)
                    elif isinstance(item, AttachEnded):
                        return collector.result(item, task.notices)
            except BaseException as cause:
                _thread.run(on_cancel.apply(task._inner, cause))
                raise
        raise AssertionError("an attachment ends with AttachEnded or an error")

    def host(self, body: Body, **options: Unpack[HostOptions]) -> BackgroundTask:
        """Does the work of a hosted task, as heeler.Client.host does, on the caller's thread.

        A function cannot be cancelled from outside: it looks at `Work.stopping` and
        `Work.cancelled`. The deadline of `within` is for each call of the worker. An interrupt
        cancels the task.
        """
        with self.register(**options) as work:
            try:
                ended = work.admitted()
                return work.finish(body(work)) if ended is None else ended
            except Exception:
                raise
            except BaseException as cause:
                _thread.run(record_stop(work._inner.task, cause))
                raise

    def register(self, **options: Unpack[HostOptions]) -> Work:
        """Registers a hosted task, as heeler.Client.register does."""
        return Work(self._run(self._inner.register(**options)), self._timeout)

    def join(self, task: TaskRef, *, take_over: bool = False) -> Work:
        """Joins a task that exists, as heeler.Client.join does."""
        return Work(self._run(self._inner.join(task, take_over=take_over)), self._timeout)

    def current(self) -> Work | None:
        """Joins the task that this process runs in. None: it runs in none."""
        work = self._run(self._inner.current())
        return None if work is None else Work(work, self._timeout)

    attach = wrapping(Attachment, asyncio_client.Client.attach)
    detach = blocking(asyncio_client.Client.detach)
    cancel = blocking(asyncio_client.Client.cancel)
    cancel_background_task = blocking(asyncio_client.Client.cancel_background_task)
    list = iterating(asyncio_client.Client.list)
    list_page = blocking(asyncio_client.Client.list_page)
    inspect = blocking(asyncio_client.Client.inspect)
    watch_events = wrapping(Watch, asyncio_client.Client.watch_events)
    wait = blocking(asyncio_client.Client.wait)
    read_output = blocking(asyncio_client.Client.read_output)
    follow_output = iterating(asyncio_client.Client.follow_output)
    write_input = blocking(asyncio_client.Client.write_input)
    resize_terminal = blocking(asyncio_client.Client.resize_terminal)
    update_task = blocking(asyncio_client.Client.update_task)
    report_progress = blocking(asyncio_client.Client.report_progress)
    send_message = blocking(asyncio_client.Client.send_message)
    remove = blocking(asyncio_client.Client.remove)
    update_queue = blocking(asyncio_client.Client.update_queue)
    list_queues = blocking(asyncio_client.Client.list_queues)
    sessions = iterating(asyncio_client.Client.sessions)
    list_sessions = blocking(asyncio_client.Client.list_sessions)
    shutdown = blocking(asyncio_client.Client.shutdown)

    def close(self) -> None:
        """Closes the connection and ends every call and stream on it."""
        self._run(self._inner.close())

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(
    address: str | Address | None = None,
    *,
    retry_for: Span = asyncio_connect.RETRY_FOR,
    token: str | None = None,
    token_file: str | os.PathLike[str] | None = None,
    tls_ca: str | os.PathLike[str] | None = None,
) -> Client:
    """Connects to a daemon, as heeler.connect does. A `with` block closes the client."""
    connecting = asyncio_connect.connect(
        address, retry_for=retry_for, token=token, token_file=token_file, tls_ca=tls_ca
    )
    return _connected(connecting)


def connect_or_start(
    address: str | Address | None = None,
    *,
    program: str | os.PathLike[str] | None = None,
    retry_for: Span = asyncio_connect.RETRY_FOR,
    token: str | None = None,
    token_file: str | os.PathLike[str] | None = None,
    tls_ca: str | os.PathLike[str] | None = None,
) -> Client:
    """Connects and starts the daemon if none is running, as heeler.connect_or_start does."""
    connecting = asyncio_connect.connect_or_start(
        address,
        program=program,
        retry_for=retry_for,
        token=token,
        token_file=token_file,
        tls_ca=tls_ca,
    )
    return _connected(connecting)


def _connected(connecting: asyncio_connect.Connecting) -> Client:
    async def connected() -> asyncio_client.Client:
        return await connecting

    return Client(_thread.run(connected()), None)
