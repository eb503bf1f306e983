"""The position of a stream over many tasks."""

from google.protobuf.timestamp_pb2 import Timestamp

from heeler._streams.follow_cursor import FollowCursor, FollowItem, TaskBegun, TaskEnded
from heeler.v1 import (
    BackgroundTask,
    FollowBookmark,
    FollowedOutput,
    FollowOutputRequest,
    FollowOutputResponse,
    OutputCursor,
)


def started(task: str) -> BackgroundTask:
    return BackgroundTask(id=task, start_time=Timestamp(seconds=1))


def begins(task: str, revision: int = 4) -> FollowOutputResponse:
    return FollowOutputResponse(task=started(task), revision=revision)


def ends(task: str, revision: int) -> FollowOutputResponse:
    return FollowOutputResponse(ended=BackgroundTask(id=task), revision=revision)


def output(task: str, next_offset: int) -> FollowOutputResponse:
    written = FollowedOutput(task_id=task, next_offset=next_offset)
    return FollowOutputResponse(output=written, revision=4)


BOOKMARK = FollowOutputResponse(bookmark=FollowBookmark(epoch="here"), revision=4)


def feed(cursor: FollowCursor, *messages: FollowOutputResponse) -> list[FollowItem]:
    return [item for message in messages for item in cursor.receive(message)]


def begun(task: str) -> FollowItem:
    return TaskBegun(started(task))


def places(cursor: FollowCursor) -> list[OutputCursor]:
    return list(cursor.request().cursors)


def test_a_break_resumes_each_task_that_has_not_ended_at_its_offset() -> None:
    """O15."""
    cursor = FollowCursor(FollowOutputRequest(include_finished=True))
    messages = [begins("a"), begins("b"), BOOKMARK, output("a", 7), begins("c", 6), ends("b", 8)]
    ended = TaskEnded(BackgroundTask(id="b"))
    assert feed(cursor, *messages) == [begun("a"), begun("b"), begun("c"), ended]
    cursor.disconnected()
    assert places(cursor) == [OutputCursor(task_id="a", offset=7), OutputCursor(task_id="c")]
    request = cursor.request()
    assert (request.after_revision, request.epoch, request.include_finished) == (8, "here", False)
    assert feed(cursor, begins("a"), begins("c"), BOOKMARK) == []


def test_a_task_that_has_not_started_is_resumed_at_its_first_byte() -> None:
    """O15."""
    cursor = FollowCursor(FollowOutputRequest(tail_lines=1))
    feed(cursor, BOOKMARK, FollowOutputResponse(task=BackgroundTask(id="a"), revision=5))
    assert places(cursor) == [OutputCursor(task_id="a", offset=0)]


def test_a_beginning_that_breaks_off_is_requested_again_and_given_once() -> None:
    """O15."""
    first = FollowOutputRequest(cursors=[OutputCursor(task_id="b", offset=3)])
    cursor = FollowCursor(first)
    assert feed(cursor, begins("a"), begins("b")) == []
    cursor.disconnected()
    assert cursor.request() == first
    assert feed(cursor, begins("b"), BOOKMARK) == [begun("b")], "a has ended in between"
    assert places(cursor) == [OutputCursor(task_id="b", offset=3)]
