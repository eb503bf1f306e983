"""An attachment to a task: its output as it arrives, then the end of the stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import grpc

from heeler._errors import status
from heeler._errors.base import HeelerError
from heeler._foreground.attach_cursor import AttachCursor, AttachItem
from heeler._streams.output import Chunk
from heeler._streams.resuming import ResumingStream
from heeler.v1 import AttachEnded, AttachRequest, AttachResponse

if TYPE_CHECKING:
    from heeler._calls.connection import Connection

_ATTEMPTS_PER_WINDOW = 4
"""Number of attempts to reconnect that fit in the reattach window."""


class Attachment(ResumingStream[AttachResponse, AttachItem]):
    """The stream of an attached client, across restarts of the daemon.

    The client is attached from the first step to AttachEnded, also between steps. Leaving before
    that, by `aclose`, by the end of an `async with` block or by cancelling a step, is a
    disconnect: `on_disconnect` of a foreground task applies after its reattach window. A step
    within the window attaches again at the same byte. A background task does not depend on its
    attached clients.
    """

    def __init__(
        self, connection: Connection, request: AttachRequest, give_up_after: float | None
    ) -> None:
        super().__init__(connection, give_up_after)
        self._cursor = AttachCursor(request)
        self._offset: int | None = None
        self._end: AttachEnded | None = None

    @property
    def offset(self) -> int | None:
        """The offset to resume from. None: no output was delivered."""
        return self._offset

    @property
    def ended(self) -> AttachEnded | None:
        """The last item, once it was delivered."""
        return self._end

    def _open(self) -> grpc.aio.UnaryStreamCall[AttachRequest, AttachResponse]:
        return self._connection.raw.Attach(self._cursor.request())

    def _receive(self, message: AttachResponse) -> Iterator[AttachItem]:
        for item in self._cursor.receive(message):
            if isinstance(item, AttachEnded):
                self._finish()
            yield item
        if self._cursor.reattach_window is not None:
            self._backoff.limit_delay(self._cursor.reattach_window / _ATTEMPTS_PER_WINDOW)

    def _is_final(self, error: HeelerError) -> bool:
        # Unlike events, output that cannot be read may stay unreadable.
        return not status.is_transient(error)

    def _delivered(self, item: AttachItem) -> None:
        if isinstance(item, Chunk):
            self._offset = item.end
        elif isinstance(item, AttachEnded):
            self._end = item
            self._drop_call()
