"""What a watch has seen, and so what it has to ask for next. Pure: messages in, items out."""

from __future__ import annotations

from collections.abc import Iterator

from heeler.v1 import BackgroundTask, Bookmark, TaskEvent, WatchEventsRequest, WatchEventsResponse

WatchItem = BackgroundTask | TaskEvent | Bookmark
"""What a watch gives.

A BackgroundTask is a live task as the initial state has it: all of them come before the first
Bookmark. A TaskEvent is something that happened. A Bookmark says how far the stream has come.
"""


class Cursor:
    """The place of a watch in the journal.

    The initial state is given only once it is complete: one that breaks off is asked for anew, and
    a part of the old one beside the new one could name tasks that ended in between.
    """

    def __init__(self, first: WatchEventsRequest) -> None:
        self._first = first
        self._initial: list[BackgroundTask] = []
        self._seen: Bookmark | None = None

    def request(self) -> WatchEventsRequest:
        """What to ask for, now or after a break."""
        request = WatchEventsRequest()
        request.CopyFrom(self._first)
        if self._seen is not None:
            request.after_revision = self._seen.revision
            request.initial_state = False
            request.state_id = self._seen.state_id
        return request

    def broke(self) -> None:
        """The connection broke: what was incomplete is worth nothing."""
        self._initial.clear()

    def take(self, message: WatchEventsResponse) -> Iterator[WatchItem]:
        """Takes a message in, and gives what the consumer gets for it."""
        match message.WhichOneof("item"):
            case "initial":
                self._initial.append(message.initial)
            case "event":
                yield from self._take_event(message.event)
            case "bookmark":
                yield from self._take_bookmark(message.bookmark)
            case None:
                pass  # From a newer daemon, and for newer clients.

    def _take_event(self, event: TaskEvent) -> Iterator[WatchItem]:
        seen = self._seen or Bookmark(state_id=self._first.state_id)
        if event.revision > seen.revision:
            self._seen = Bookmark(revision=event.revision, state_id=seen.state_id)
            yield event

    def _take_bookmark(self, bookmark: Bookmark) -> Iterator[WatchItem]:
        initial, self._initial = self._initial, []
        yield from initial
        if self._seen is None or bookmark.revision >= self._seen.revision:
            self._seen = bookmark
            yield bookmark
