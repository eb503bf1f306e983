"""What a watch asks for, and what it gives, whatever happens to its connection."""

import pytest

from heeler import BackgroundTask, Bookmark, TaskEvent, TaskEventType
from heeler._cursor import Cursor
from heeler.v1 import WatchEventsRequest, WatchEventsResponse


def event(revision: int) -> WatchEventsResponse:
    return WatchEventsResponse(event=TaskEvent(revision=revision))


def bookmark(revision: int) -> WatchEventsResponse:
    return WatchEventsResponse(bookmark=Bookmark(revision=revision, state_id="here"))


def initial(task_id: str) -> WatchEventsResponse:
    return WatchEventsResponse(initial=BackgroundTask(id=task_id))


def given(cursor: Cursor, *messages: WatchEventsResponse) -> list[str]:
    """Events as revisions, bookmarks as `b` and revision, tasks as their ids."""
    names = []
    for message in messages:
        for item in cursor.take(message):
            match item:
                case BackgroundTask():
                    names.append(item.id)
                case TaskEvent():
                    names.append(str(item.revision))
                case Bookmark():
                    names.append(f"b{item.revision}")
    return names


def after(revision: int) -> Cursor:
    return Cursor(WatchEventsRequest(after_revision=revision, types=[TaskEventType.ENDED]))


def test_a_break_resumes_after_the_last_event_in_the_same_state() -> None:
    """E2."""
    cursor = after(4)
    assert given(cursor, bookmark(4), event(5), event(8)) == ["b4", "5", "8"]
    cursor.broke()
    request = cursor.request()
    assert (request.after_revision, request.state_id) == (8, "here")
    assert list(request.types) == [6], "the filters stay"


def test_what_comes_again_after_a_break_is_not_given_again() -> None:
    """E2."""
    again = [bookmark(0), event(1), event(2), bookmark(1), event(2), event(3)]
    assert given(after(0), *again) == ["b0", "1", "2", "3"]


def test_a_bookmark_moves_the_place_past_events_that_do_not_match() -> None:
    """E8."""
    cursor = after(0)
    given(cursor, bookmark(0), bookmark(90))
    assert cursor.request().after_revision == 90


def test_an_initial_state_that_breaks_off_is_asked_for_anew_and_given_once() -> None:
    """E3."""
    cursor = Cursor(WatchEventsRequest(initial_state=True))
    assert given(cursor, initial("a"), initial("b")) == []
    cursor.broke()
    assert cursor.request().initial_state
    assert given(cursor, initial("b"), bookmark(7), event(8)) == ["b", "b7", "8"]
    cursor.broke()
    request = cursor.request()
    assert not request.initial_state
    assert request.after_revision == 8


@pytest.mark.parametrize("breaks", [0, 3])
def test_a_watch_from_now_that_was_never_answered_is_still_from_now(breaks: int) -> None:
    cursor = Cursor(WatchEventsRequest())
    for _ in range(breaks):
        cursor.broke()
    assert not cursor.request().HasField("after_revision")
    given(cursor, bookmark(3))
    assert cursor.request().after_revision == 3


def test_an_item_from_a_newer_daemon_is_passed_over() -> None:
    assert given(after(0), WatchEventsResponse()) == []
