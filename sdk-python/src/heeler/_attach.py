"""A hold on a task: its output as it comes, and then the release.

It reconnects, and goes on at the byte where it broke; what that is, the Hold alone decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import grpc

from heeler import _status
from heeler._errors import HeelerError
from heeler._hold import AttachItem, Hold
from heeler._output import Chunk
from heeler._resume import Resuming
from heeler.v1 import AttachRequest, AttachResponse, Released

if TYPE_CHECKING:
    from heeler._client import Client

_TRIES_IN_A_WINDOW = 4
"""A holder has to come back within its window: it tries several times in it."""


class Attachment(Resuming[AttachResponse, AttachItem]):
    """What a task is attached to, across every restart of the daemon.

    A foreground task is held from the first step on, until the release, and also between steps.
    Leaving before that, by `aclose`, by the end of an `async with` block, or by cancelling a step,
    lets go: what becomes of the task after its holder window is for its `on_holder_gone` to say.
    Another step within the window takes the hold up again, at the same byte. A task in the
    background is held by nobody: it is followed until its leader exits.
    """

    def __init__(self, client: Client, request: AttachRequest, give_up_after: float | None) -> None:
        super().__init__(client, give_up_after)
        self._hold = Hold(request)
        self._offset: int | None = None
        self._released: Released | None = None

    @property
    def offset(self) -> int | None:
        """Where to go on after what was given so far; None: no output was."""
        return self._offset

    @property
    def released(self) -> Released | None:
        """How the hold ended, once that was given."""
        return self._released

    def _ask(self) -> grpc.aio.UnaryStreamCall[AttachRequest, AttachResponse]:
        return self._client.stub.Attach(self._hold.request())

    def _take(self, message: AttachResponse) -> Iterator[AttachItem]:
        for item in self._hold.take(message):
            if isinstance(item, Released):
                self._end()
            yield item
        if self._hold.window is not None:
            self._backoff.no_longer_than(self._hold.window / _TRIES_IN_A_WINDOW)

    def _broke(self) -> None:
        pass  # All that was taken in is complete in itself.

    def _is_final(self, error: HeelerError) -> bool:
        # Unlike events, output that cannot be read may stay so for ever.
        return not _status.is_transient(error)

    def _given(self, item: AttachItem) -> None:
        if isinstance(item, Chunk):
            self._offset = item.end
        elif isinstance(item, Released):
            self._released = item
            self._drop()
