"""The position of an attachment. Pure: messages in, items out."""

from __future__ import annotations

from collections.abc import Iterator

from heeler._streams.output import Chunk, to_chunk
from heeler.v1 import Attached, AttachEnded, AttachRequest, AttachResponse
from heeler.v1.enums import Placement

AttachItem = Attached | Chunk | AttachEnded
"""An item of an attachment.

Attached is the first, with the state of the task; it is not repeated after a break. A Chunk
directly follows the one before it. AttachEnded is the last.
"""


class AttachCursor:
    """The position of an attachment in the output of a task.

    A client that was attached in the foreground resumes with `foreground_only`: if the task was
    detached during a break, the stream ends.
    """

    def __init__(self, first: AttachRequest) -> None:
        self._request = first
        self._attached = False
        self._reattach_window: float | None = None

    @property
    def reattach_window(self) -> float | None:
        """The time to attach again, in seconds. None: no limit, or not known yet."""
        return self._reattach_window

    def request(self) -> AttachRequest:
        """Returns the request for the present position."""
        return self._request

    def receive(self, message: AttachResponse) -> Iterator[AttachItem]:
        """Advances past a message and yields its items."""
        match message.WhichOneof("item"):
            case "attached":
                yield from self._receive_attached(message.attached)
            case "output":
                self._request.offset = message.output.next_offset
                yield from map(to_chunk, message.output.chunks)
            case "ended":
                yield message.ended
            case None:
                pass  # An item that only newer clients know.

    def _receive_attached(self, attached: Attached) -> Iterator[AttachItem]:
        if self._attached:
            return
        self._attached = True
        task = attached.task
        if task.placement == Placement.FOREGROUND:
            self._request.foreground_only = True
            window = task.spec.foreground.reattach_window
            self._reattach_window = window.ToTimedelta().total_seconds()
        yield attached
