"""The handle of one session: its id and a client. Dropping it has no effect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heeler._calls.pages import Pages
from heeler._calls.task import Task
from heeler._foreground.run import RunResult
from heeler._options.cancel import CancelOptions
from heeler._options.check import check_options
from heeler._options.filter import Filter, within_session
from heeler._options.spawn import Command, SessionRunOptions, SessionSpawnOptions
from heeler._options.time import Span
from heeler._streams.output import Chunk
from heeler._streams.watch import Watch
from heeler.v1 import BackgroundTask, Bookmark, CancelResult, TaskEvent
from heeler.v1.enums import TaskEventType, TaskEventTypeWord, TaskKind
from heeler.v1.errors import EpochMismatchError, RevisionOutOfRangeError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from heeler._calls.client import Client

_LARGEST_PAGE = 1000


@dataclass(frozen=True)
class SessionCounts:
    """The number of live tasks of a session, by kind."""

    agents: int
    shells: int
    hosted: int = 0


def session_counts(event: TaskEvent) -> SessionCounts | None:
    """Returns the live tasks of the session right after an event. None: the event has no counts.

    CREATED and ENDED of a task with a session have counts, and SESSION_IDLE has. The field
    `session_activity` of any other event reads as zeros, although it is absent.
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

    async def run(
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
        return await self._client.run(
            command,
            on_output=on_output,
            detach_on_cancel=detach_on_cancel,
            cancel_reason=cancel_reason,
            give_up_after=give_up_after,
            session=self._id,
            **options,
        )

    def list(
        self,
        filter: Filter | None = None,
        *,
        include_finished: bool = False,
        include_finished_foreground: bool = False,
        page_size: int = 0,
    ) -> Pages[str, BackgroundTask]:
        """Returns an iterator over the tasks of the session that match, as Client.list does."""
        return self._client.list(
            within_session(self._id, filter),
            include_finished=include_finished,
            include_finished_foreground=include_finished_foreground,
            page_size=page_size,
        )

    async def cancel(
        self, *, filter: Filter | None = None, **options: Unpack[CancelOptions]
    ) -> Sequence[CancelResult]:
        """Stops the live tasks of the session that match, as Client.cancel does."""
        check_options("Session.cancel", options, CancelOptions)
        return await self._client.cancel(filter=within_session(self._id, filter), **options)

    def watch(
        self,
        *,
        after: int | Bookmark | None = None,
        initial_state: bool = False,
        filter: Filter | None = None,
        types: Iterable[TaskEventTypeWord] = (),
        bookmark_interval: Span | None = None,
        give_up_after: Span | None = None,
    ) -> Watch:
        """Streams the events of the session, as Client.watch_events does.

        SESSION_IDLE is among them, unless `filter` narrows them further.
        """
        return self._client.watch_events(
            after=after,
            initial_state=initial_state,
            filter=within_session(self._id, filter),
            types=types,
            bookmark_interval=bookmark_interval,
            give_up_after=give_up_after,
        )

    async def counts(self) -> SessionCounts:
        """Returns the number of tasks that are live now."""
        live = [TaskKind(task.spec.kind) async for task in self.list(page_size=_LARGEST_PAGE)]
        agents, hosted = live.count(TaskKind.AGENT), live.count(TaskKind.HOSTED)
        return SessionCounts(agents, len(live) - agents - hosted, hosted)

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
