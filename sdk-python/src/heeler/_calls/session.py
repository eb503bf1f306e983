"""The handle of one session: its id and a client. Dropping it has no effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heeler._calls.pages import Pages
from heeler._calls.task import Task
from heeler._foreground.run import RunResult
from heeler._options.calls import ListOptions, SessionRunCall, WatchOptions
from heeler._options.cancel import CancelOptions
from heeler._options.check import check_options
from heeler._options.filter import Filter, within_session
from heeler._options.spawn import (
    Command,
    SessionHostOptions,
    SessionSpawnOptions,
)
from heeler._options.time import Span
from heeler._streams.watch import Watch
from heeler._work.host import Body
from heeler.v1 import BackgroundTask, CancelResult, SessionActivity, SessionInfo, TaskEvent
from heeler.v1.enums import TaskEventType
from heeler.v1.errors import EpochMismatchError, RevisionOutOfRangeError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from heeler._calls.client import Client


@dataclass(frozen=True)
class SessionCounts:
    """The number of live tasks of a session, by kind."""

    agents: int
    shells: int
    hosted: int = 0


def session_counts(event: TaskEvent) -> SessionCounts | None:
    """Returns the live tasks of the session right after an event. None: the event has no counts.

    CREATED and ENDED of a task with a session have counts, and so have SESSION_IDLE and a STALE or
    ACTIVE that changes them. The field `session_activity` has the ids as well; that of any other
    event reads as zeros, although it is absent.
    """
    if not event.HasField("session_activity"):
        return None
    activity = event.session_activity
    return SessionCounts(activity.agents, activity.shells, activity.hosted)


class Session:
    """The tasks of one host conversation. The daemon has them: a session needs no set-up."""

    def __init__(self, client: Client, session_id: str) -> None:
        if not session_id:
            raise ValueError("the id of a session cannot be empty")
        self._client = client
        self._id = session_id

    @property
    def id(self) -> str:
        """The id of the session."""
        return self._id

    async def spawn(self, command: Command, **options: Unpack[SessionSpawnOptions]) -> Task:
        """Starts a task of the session, as Client.spawn does."""
        check_options("Session.spawn", options, SessionSpawnOptions)
        return await self._client.spawn(command, session=self._id, **options)

    async def run(self, command: Command, **options: Unpack[SessionRunCall]) -> RunResult:
        """Runs a command of the session in the foreground, as Client.run does."""
        check_options("Session.run", options, SessionRunCall)
        return await self._client.run(command, session=self._id, **options)

    async def host(self, body: Body, **options: Unpack[SessionHostOptions]) -> BackgroundTask:
        """Does the work of a hosted task of the session, as Client.host does."""
        check_options("Session.host", options, SessionHostOptions)
        return await self._client.host(body, session=self._id, **options)

    def list(
        self, filter: Filter | None = None, **options: Unpack[ListOptions]
    ) -> Pages[str, BackgroundTask]:
        """Returns an iterator over the tasks of the session that match, as Client.list does."""
        check_options("Session.list", options, ListOptions)
        return self._client.list(within_session(self._id, filter), **options)

    async def cancel(
        self, *, filter: Filter | None = None, **options: Unpack[CancelOptions]
    ) -> Sequence[CancelResult]:
        """Stops the live tasks of the session that match, as Client.cancel does."""
        check_options("Session.cancel", options, CancelOptions)
        return await self._client.cancel(filter=within_session(self._id, filter), **options)

    def watch(self, *, filter: Filter | None = None, **options: Unpack[WatchOptions]) -> Watch:
        """Streams the events of the session, as Client.watch_events does.

        SESSION_IDLE is among them, unless `filter` narrows them further.
        """
        check_options("Session.watch", options, WatchOptions)
        return self._client.watch_events(filter=within_session(self._id, filter), **options)

    async def info(self) -> SessionInfo | None:
        """Returns the live tasks with their ids, since when, and the last activity. None: none."""
        found = (await self._client.list_sessions(self._id)).sessions
        return found[0] if found else None

    async def counts(self) -> SessionCounts:
        """Returns the number of tasks that are live now."""
        info = await self.info()
        activity = SessionActivity() if info is None else info.activity
        return SessionCounts(activity.agents, activity.shells, activity.hosted)

    async def wait_until_idle(self, *, give_up_after: Span | None = None) -> None:
        """Waits until no task of the session is live. Returns at once if none is.

        A daemon that restarts is waited for, without limit or for `give_up_after`.
        """
        while not await self._became_idle(give_up_after):
            pass

    async def _became_idle(self, give_up_after: Span | None) -> bool:
        """Waits for the idle session. False: the daemon has lost events; ask it again."""
        is_live = False
        watch = self.watch(
            initial_state=True, types=[TaskEventType.SESSION_IDLE], give_up_after=give_up_after
        )
        async with watch:
            try:
                async for item in watch:
                    if isinstance(item, BackgroundTask):
                        is_live = True
                    elif isinstance(item, TaskEvent) or not is_live:
                        return True
            except (EpochMismatchError, RevisionOutOfRangeError):
                return False
        raise AssertionError("a watch ends with an error")

    def __repr__(self) -> str:
        return f"Session({self._id!r})"
