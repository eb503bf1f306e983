"""The output of many tasks: the stream reconnects and resumes without loss or repetition."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import grpc

from heeler._errors import status
from heeler._errors.base import HeelerError
from heeler._streams.follow_cursor import FollowCursor, FollowItem
from heeler._streams.resuming import ResumingStream
from heeler.v1 import FollowOutputRequest, FollowOutputResponse

if TYPE_CHECKING:
    from heeler._calls.connection import Connection


class Follow(ResumingStream[FollowOutputResponse, FollowItem]):
    """The output of many tasks, across restarts of the daemon.

    With `until="finished"` it ends after the last task, else only with an error that reconnecting
    cannot cure.
    """

    def __init__(
        self, connection: Connection, request: FollowOutputRequest, give_up_after: float | None
    ) -> None:
        super().__init__(connection, give_up_after)
        self._cursor = FollowCursor(request)

    def _open(self) -> grpc.aio.UnaryStreamCall[FollowOutputRequest, FollowOutputResponse]:
        return self._connection.raw.FollowOutput(self._cursor.request())

    def _receive(self, message: FollowOutputResponse) -> Iterable[FollowItem]:
        items = self._cursor.receive(message)
        if self._cursor.finished:
            self._finish()
        return items

    def _closed(self) -> None:
        self._cursor.disconnected()

    def _is_final(self, error: HeelerError) -> bool:
        return status.is_final(error)
