"""What an attachment has seen, and so what it asks for next. Pure: messages in, items out."""

from __future__ import annotations

from collections.abc import Iterator

from heeler._output import Chunk, to_chunk
from heeler.v1 import Attached, AttachRequest, AttachResponse, Released
from heeler.v1.enums import Placement

AttachItem = Attached | Chunk | Released
"""What an attachment gives.

Attached is the first, and says what is held; it is not repeated after a break. A Chunk is a piece
of output, right behind the one before it. Released is the last: the hold is over.
"""


class Hold:
    """The place of an attachment in a task's output.

    Whoever was held once does not follow the task in the background if it was detached during a
    break, but is released.
    """

    def __init__(self, first: AttachRequest) -> None:
        self._request = first
        self._attached = False
        self._window: float | None = None

    @property
    def window(self) -> float | None:
        """How many seconds nobody may hold the task; None: that is no matter, or not known yet."""
        return self._window

    def request(self) -> AttachRequest:
        """What to ask for, now or after a break."""
        return self._request

    def take(self, message: AttachResponse) -> Iterator[AttachItem]:
        """Takes a message in, and gives what the consumer gets for it."""
        match message.WhichOneof("item"):
            case "attached":
                yield from self._take_attached(message.attached)
            case "output":
                self._request.offset = message.output.next_offset
                yield from map(to_chunk, message.output.chunks)
            case "released":
                yield message.released
            case None:
                pass  # From a newer daemon, and for newer clients.

    def _take_attached(self, attached: Attached) -> Iterator[AttachItem]:
        if self._attached:
            return
        self._attached = True
        task = attached.task
        if task.placement == Placement.FOREGROUND:
            self._request.foreground_only = True
            self._window = task.holder_window.ToTimedelta().total_seconds()
        yield attached
