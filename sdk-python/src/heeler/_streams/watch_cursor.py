"""The position of a watch. Pure: messages in, items out."""

from __future__ import annotations

from collections.abc import Iterator

from heeler.v1 import BackgroundTask, Bookmark, TaskEvent, WatchEventsRequest, WatchEventsResponse

WatchItem = BackgroundTask | TaskEvent | Bookmark
"""An item of a watch.

A BackgroundTask is a live task of the initial state; all of them come before the first Bookmark. A
TaskEvent is an event. A Bookmark is the progress of the stream.
"""


class WatchCursor:
    """The position of a watch in the journal.

    The initial state is returned once it is complete. If the connection breaks before that, it is
    requested again: part of the old state could name tasks that have ended since.
    """

    def __init__(self, first: WatchEventsRequest) -> None:
        self._first = first
        self._initial: list[BackgroundTask] = []
        self._position: Bookmark | None = None

    def request(self) -> WatchEventsRequest:
        """Returns the request for the present position."""
        request = WatchEventsRequest()
        request.CopyFrom(self._first)
        if self._position is not None:
            request.after_revision = self._position.revision
            request.initial_state = False
            request.epoch = self._position.epoch
        return request

    def disconnected(self) -> None:
        """Drops an incomplete initial state."""
        self._initial.clear()

    def receive(self, message: WatchEventsResponse) -> Iterator[WatchItem]:
        """Advances past a message and yields its items."""
        match message.WhichOneof("item"):
            case "initial":
                self._initial.append(message.initial)
            case "event":
                yield from self._receive_event(message.event)
            case "bookmark":
                yield from self._receive_bookmark(message.bookmark)
            case None:
                pass  # An item that only newer clients know.

    def _receive_event(self, event: TaskEvent) -> Iterator[WatchItem]:
        position = self._position or Bookmark(epoch=self._first.epoch)
        if event.revision > position.revision:
            self._position = Bookmark(revision=event.revision, epoch=position.epoch)
            yield event

    def _receive_bookmark(self, bookmark: Bookmark) -> Iterator[WatchItem]:
        initial, self._initial = self._initial, []
        yield from initial
        if self._position is None or bookmark.revision >= self._position.revision:
            self._position = bookmark
            yield bookmark
