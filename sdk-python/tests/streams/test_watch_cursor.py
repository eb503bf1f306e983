"""The position of a watch. No daemon."""

import pytest

from heeler import BackgroundTask, Bookmark, TaskEvent, TaskEventType
from heeler._streams.watch_cursor import WatchCursor
from heeler.v1 import WatchEventsRequest, WatchEventsResponse


def event(revision: int) -> WatchEventsResponse:
    return WatchEventsResponse(event=TaskEvent(revision=revision))


def bookmark(revision: int) -> WatchEventsResponse:
    return WatchEventsResponse(bookmark=Bookmark(revision=revision, epoch="here"))


def initial(task_id: str) -> WatchEventsResponse:
    return WatchEventsResponse(initial=BackgroundTask(id=task_id))


def items(cursor: WatchCursor, *messages: WatchEventsResponse) -> list[str]:
    """Returns events as revisions, bookmarks as `b` and revision, tasks as ids."""
    names = []
    for message in messages:
        for item in cursor.receive(message):
            match item:
                case BackgroundTask():
                    names.append(item.id)
                case TaskEvent():
                    names.append(str(item.revision))
                case Bookmark():
                    names.append(f"b{item.revision}")
    return names


def after(revision: int) -> WatchCursor:
    return WatchCursor(WatchEventsRequest(after_revision=revision, types=[TaskEventType.ENDED]))


def test_after_a_break_it_resumes_after_the_last_event_of_the_epoch() -> None:
    """E2."""
    cursor = after(4)
    assert items(cursor, bookmark(4), event(5), event(8)) == ["b4", "5", "8"]
    cursor.disconnected()
    request = cursor.request()
    assert (request.after_revision, request.epoch) == (8, "here")
    assert list(request.types) == [6], "the filters are kept"


def test_repeated_events_are_dropped() -> None:
    """E2."""
    again = [bookmark(0), event(1), event(2), bookmark(1), event(2), event(3)]
    assert items(after(0), *again) == ["b0", "1", "2", "3"]


def test_a_bookmark_advances_past_events_that_do_not_match() -> None:
    """E8."""
    cursor = after(0)
    items(cursor, bookmark(0), bookmark(90))
    assert cursor.request().after_revision == 90


def test_an_incomplete_initial_state_is_requested_again() -> None:
    """E3."""
    cursor = WatchCursor(WatchEventsRequest(initial_state=True))
    assert items(cursor, initial("a"), initial("b")) == []
    cursor.disconnected()
    assert cursor.request().initial_state
    assert items(cursor, initial("b"), bookmark(7), event(8)) == ["b", "b7", "8"]
    cursor.disconnected()
    request = cursor.request()
    assert not request.initial_state
    assert request.after_revision == 8


@pytest.mark.parametrize("breaks", [0, 3])
def test_a_watch_from_now_stays_from_now_until_its_first_answer(breaks: int) -> None:
    cursor = WatchCursor(WatchEventsRequest())
    for _ in range(breaks):
        cursor.disconnected()
    assert not cursor.request().HasField("after_revision")
    items(cursor, bookmark(3))
    assert cursor.request().after_revision == 3


def test_an_unknown_item_is_ignored() -> None:
    assert items(after(0), WatchEventsResponse()) == []
