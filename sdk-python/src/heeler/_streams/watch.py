"""The event stream: it reconnects and resumes without loss or repetition."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import grpc

from heeler._errors import status
from heeler._errors.base import HeelerError
from heeler._streams.resuming import ResumingStream
from heeler._streams.watch_cursor import WatchCursor, WatchItem
from heeler.v1 import Bookmark, TaskEvent, WatchEventsRequest, WatchEventsResponse

if TYPE_CHECKING:
    from heeler._calls.connection import Connection


class Watch(ResumingStream[WatchEventsResponse, WatchItem]):
    """Events after a point, across restarts of the daemon.

    It ends only with an error that reconnecting cannot cure: a revision that the daemon does not
    have, another epoch, the daemon of another user, or a bad argument. A watcher that stops
    reading costs the daemon nothing and misses nothing.
    """

    def __init__(
        self, connection: Connection, request: WatchEventsRequest, give_up_after: float | None
    ) -> None:
        super().__init__(connection, give_up_after)
        self._cursor = WatchCursor(request)
        self._bookmark: Bookmark | None = None

    @property
    def bookmark(self) -> Bookmark | None:
        """The position after the last item. Store it to resume after a crash of the watcher."""
        return self._bookmark

    def _open(self) -> grpc.aio.UnaryStreamCall[WatchEventsRequest, WatchEventsResponse]:
        return self._connection.raw.WatchEvents(self._cursor.request())

    def _receive(self, message: WatchEventsResponse) -> Iterable[WatchItem]:
        return self._cursor.receive(message)

    def _closed(self) -> None:
        self._cursor.disconnected()

    def _is_final(self, error: HeelerError) -> bool:
        return status.is_final(error)

    def _delivered(self, item: WatchItem) -> None:
        if isinstance(item, Bookmark):
            self._bookmark = item
        elif isinstance(item, TaskEvent):
            epoch = self._cursor.request().epoch
            self._bookmark = Bookmark(revision=item.revision, epoch=epoch)
