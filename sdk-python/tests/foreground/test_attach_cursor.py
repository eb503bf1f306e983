"""The position of an attachment. No daemon."""

from google.protobuf.duration_pb2 import Duration

from heeler import AttachEnded, AttachEndReason, AttachItem, Chunk, OutputStream, Placement
from heeler._foreground.attach_cursor import AttachCursor
from heeler.v1 import (
    Attached,
    AttachedOutput,
    AttachRequest,
    AttachResponse,
    BackgroundTask,
    ForegroundPolicy,
    OutputChunk,
    TaskSpec,
)


def attached(placement: Placement) -> AttachResponse:
    foreground = ForegroundPolicy(reattach_window=Duration(seconds=2))
    task = BackgroundTask(placement=placement, spec=TaskSpec(foreground=foreground))
    return AttachResponse(attached=Attached(task=task))


def output(offset: int, data: bytes) -> AttachResponse:
    chunk = OutputChunk(offset=offset, stream=OutputStream.STDOUT, data=data)
    return AttachResponse(output=AttachedOutput(chunks=[chunk], next_offset=offset + len(data)))


def kinds(cursor: AttachCursor, *messages: AttachResponse) -> list[type[AttachItem]]:
    return [type(item) for message in messages for item in cursor.receive(message)]


def test_after_a_break_it_resumes_at_the_next_byte_in_the_foreground() -> None:
    """F6."""
    cursor = AttachCursor(AttachRequest(task_id="shell-a", tail_bytes=9))
    assert cursor.request().tail_bytes == 9
    assert kinds(cursor, attached(Placement.FOREGROUND), output(5, b"abc")) == [Attached, Chunk]
    assert cursor.request() == AttachRequest(task_id="shell-a", offset=8, foreground_only=True)
    assert cursor.reattach_window == 2


def test_attached_is_delivered_once() -> None:
    cursor = AttachCursor(AttachRequest())
    assert kinds(cursor, attached(Placement.FOREGROUND), output(0, b"ab")) == [Attached, Chunk]
    assert kinds(cursor, attached(Placement.BACKGROUND), output(2, b"c")) == [Chunk]
    ended = AttachResponse(ended=AttachEnded(reason=AttachEndReason.DETACHED))
    assert kinds(cursor, ended, AttachResponse()) == [AttachEnded]


def test_a_background_task_is_followed_after_a_break() -> None:
    cursor = AttachCursor(AttachRequest())
    assert kinds(cursor, attached(Placement.BACKGROUND)) == [Attached]
    assert not cursor.request().foreground_only
    assert cursor.reattach_window is None
