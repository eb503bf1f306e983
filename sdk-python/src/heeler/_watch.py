"""The event stream as it should be consumed: it reconnects, and resumes without loss or repeat.

What has been seen, and so what to ask for next, is decided by the Cursor alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import grpc

from heeler import _status
from heeler._cursor import Cursor, WatchItem
from heeler._errors import HeelerError
from heeler._resume import Resuming
from heeler.v1 import Bookmark, TaskEvent, WatchEventsRequest, WatchEventsResponse

if TYPE_CHECKING:
    from heeler._client import Client


class Watch(Resuming[WatchEventsResponse, WatchItem]):
    """Events, from a point on, across every restart of the daemon.

    It ends only with an error that reconnecting cannot cure: a revision that the daemon no longer
    has, another state directory, another user's daemon, a bad argument. A watcher that stops
    reading costs the daemon nothing and misses nothing; a step that is cancelled, by a timeout for
    instance, loses nothing either.
    """

    def __init__(
        self, client: Client, request: WatchEventsRequest, give_up_after: float | None
    ) -> None:
        super().__init__(client, give_up_after)
        self._cursor = Cursor(request)
        self._bookmark: Bookmark | None = None

    @property
    def bookmark(self) -> Bookmark | None:
        """Where to go on after what was given so far: keep it to outlive a crash of the watcher."""
        return self._bookmark

    def _ask(self) -> grpc.aio.UnaryStreamCall[WatchEventsRequest, WatchEventsResponse]:
        return self._client.stub.WatchEvents(self._cursor.request())

    def _take(self, message: WatchEventsResponse) -> Iterable[WatchItem]:
        return self._cursor.take(message)

    def _broke(self) -> None:
        self._cursor.broke()

    def _is_final(self, error: HeelerError) -> bool:
        return _status.is_final(error)

    def _given(self, item: WatchItem) -> None:
        if isinstance(item, Bookmark):
            self._bookmark = item
        elif isinstance(item, TaskEvent):
            state = self._cursor.request().state_id
            self._bookmark = Bookmark(revision=item.revision, state_id=state)
