"""The blocking face of a session handle."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from heeler._calls import session as asyncio_session
from heeler._foreground.run import RunResult
from heeler._options.check import check_options
from heeler._options.spawn import Command, SessionRunOptions, SessionSpawnOptions
from heeler._options.time import Span
from heeler._streams.output import Chunk
from heeler.sync._face import Face, blocking, iterating, wrapping
from heeler.sync._streams import Watch
from heeler.sync._task import Task

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

    def run(
        self,
        command: Command,
        *,
        on_output: Callable[[Chunk], object] | None = None,
        detach_on_cancel: bool = False,
        cancel_reason: str = "",
        give_up_after: Span | None = None,
        **options: Unpack[SessionRunOptions],
    ) -> RunResult:
        """Runs a command of the session in the foreground, as Client.run does."""
        check_options("Session.run", options, SessionRunOptions)
        return self._client.run(
            command,
            on_output=on_output,
            detach_on_cancel=detach_on_cancel,
            cancel_reason=cancel_reason,
            give_up_after=give_up_after,
            session=self.id,
            **options,
        )

    list = iterating(asyncio_session.Session.list)
    cancel = blocking(asyncio_session.Session.cancel)
    watch = wrapping(Watch, asyncio_session.Session.watch)
    counts = blocking(asyncio_session.Session.counts)
    wait_until_idle = blocking(asyncio_session.Session.wait_until_idle)

    def __repr__(self) -> str:
        return f"Session({self.id!r})"
