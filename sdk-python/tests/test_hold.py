"""What an attachment asks for after a break, and when it is over. No daemon."""

from google.protobuf.duration_pb2 import Duration

from heeler import AttachItem, Chunk, OutputStream, Placement, Released, ReleaseReason
from heeler._hold import Hold
from heeler.v1 import (
    Attached,
    AttachedOutput,
    AttachRequest,
    AttachResponse,
    BackgroundTask,
    OutputChunk,
)


def attached(placement: Placement.ValueType) -> AttachResponse:
    task = BackgroundTask(placement=placement, holder_window=Duration(seconds=2))
    return AttachResponse(attached=Attached(task=task))


def output(offset: int, data: bytes) -> AttachResponse:
    chunk = OutputChunk(offset=offset, stream=OutputStream.STDOUT, data=data)
    return AttachResponse(output=AttachedOutput(chunks=[chunk], next_offset=offset + len(data)))


def kinds(hold: Hold, *messages: AttachResponse) -> list[type[AttachItem]]:
    return [type(item) for message in messages for item in hold.take(message)]


def test_after_a_break_it_asks_for_the_next_byte_and_for_the_hold_it_had() -> None:
    """F6."""
    hold = Hold(AttachRequest(task_id="shell-a", tail_bytes=9))
    assert hold.request().tail_bytes == 9
    held = attached(Placement.FOREGROUND)
    assert kinds(hold, held, output(5, b"abc")) == [Attached, Chunk]
    assert hold.request() == AttachRequest(task_id="shell-a", offset=8, foreground_only=True)
    assert hold.window == 2


def test_what_is_held_is_said_once() -> None:
    hold = Hold(AttachRequest())
    assert kinds(hold, attached(Placement.FOREGROUND), output(0, b"ab")) == [Attached, Chunk]
    assert kinds(hold, attached(Placement.BACKGROUND), output(2, b"c")) == [Chunk]
    told = AttachResponse(released=Released(reason=ReleaseReason.DETACHED))
    assert kinds(hold, told, AttachResponse()) == [Released]


def test_a_task_in_the_background_is_followed_after_a_break_too() -> None:
    hold = Hold(AttachRequest())
    assert kinds(hold, attached(Placement.BACKGROUND)) == [Attached]
    assert not hold.request().foreground_only
    assert hold.window is None
