"""The blocking face of a session handle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heeler._calls import session as asyncio_session
from heeler._foreground.run import RunResult
from heeler._options.calls import SessionRunCall
from heeler._options.check import check_options
from heeler._options.spawn import (
    Command,
    SessionHostOptions,
    SessionSpawnOptions,
)
from heeler.sync._face import Face, blocking, iterating, wrapping
from heeler.sync._streams import Watch
from heeler.sync._task import Task
from heeler.sync._work import Body
from heeler.v1 import BackgroundTask

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from heeler.sync._client import Client


class Session(Face[asyncio_session.Session]):
    """The blocking face of heeler.Session. `client.within(10).session("id")` has a deadline."""

    def __init__(self, client: Client, session_id: str) -> None:
        super().__init__(client._inner.session(session_id), client._timeout)
        self._client = client

    @property
    def id(self) -> str:
        """The id of the session."""
        return self._inner.id

    def spawn(self, command: Command, **options: Unpack[SessionSpawnOptions]) -> Task:
        """Starts a task of the session, as heeler.Session.spawn does."""
        return Task(self._run(self._inner.spawn(command, **options)), self._timeout)

    def run(self, command: Command, **options: Unpack[SessionRunCall]) -> RunResult:
        """Runs a command of the session in the foreground, as Client.run does."""
        check_options("Session.run", options, SessionRunCall)
        return self._client.run(command, session=self.id, **options)

    def host(self, body: Body, **options: Unpack[SessionHostOptions]) -> BackgroundTask:
        """Does the work of a hosted task of the session, as Client.host does."""
        check_options("Session.host", options, SessionHostOptions)
        return self._client.host(body, session=self.id, **options)

    list = iterating(asyncio_session.Session.list)
    cancel = blocking(asyncio_session.Session.cancel)
    watch = wrapping(Watch, asyncio_session.Session.watch)
    info = blocking(asyncio_session.Session.info)
    counts = blocking(asyncio_session.Session.counts)
    wait_until_idle = blocking(asyncio_session.Session.wait_until_idle)

    def __repr__(self) -> str:
        return f"Session({self.id!r})"
