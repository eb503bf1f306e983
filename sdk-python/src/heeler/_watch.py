"""The event stream as it should be consumed: it reconnects, and resumes without loss or repeat.

What has been seen, and so what to ask for next, is decided by the Cursor alone.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, TypeVar

import grpc

from heeler import _status
from heeler._backoff import Backoff
from heeler._cursor import Cursor, WatchItem
from heeler._errors import ClientClosed, Disconnected, HeelerError
from heeler.v1 import Bookmark, TaskEvent, WatchEventsRequest, WatchEventsResponse

if TYPE_CHECKING:
    from heeler._client import Client

Call = grpc.aio.UnaryStreamCall[WatchEventsRequest, WatchEventsResponse]
Self = TypeVar("Self", bound="Watch")


class Watch(AsyncIterator[WatchItem]):
    """Events, from a point on, across every restart of the daemon.

    It ends only with an error that reconnecting cannot cure: a revision that the daemon no longer
    has, another state directory, another user's daemon, a bad argument. A watcher that stops
    reading costs the daemon nothing and misses nothing; a step that is cancelled, by a timeout for
    instance, loses nothing either.
    """

    def __init__(
        self, client: Client, request: WatchEventsRequest, give_up_after: float | None
    ) -> None:
        self._client = client
        self._cursor = Cursor(request)
        self._backoff = Backoff(give_up_after)
        self._call: Call | None = None
        self._asked = 0.0
        self._heard = False
        self._ready: deque[WatchItem] = deque()
        self._over = False
        self._bookmark: Bookmark | None = None

    @property
    def bookmark(self) -> Bookmark | None:
        """Where to go on after what was given so far: keep it to outlive a crash of the watcher."""
        return self._bookmark

    async def __anext__(self) -> WatchItem:
        while not self._ready:
            if self._over:
                raise StopAsyncIteration
            try:
                message = await self._read()
            except HeelerError as error:
                await self._pause(error)
            else:
                self._heard = True
                self._backoff.reset()
                self._ready.extend(self._cursor.take(message))
        return self._give(self._ready.popleft())

    async def aclose(self) -> None:
        """Ends it."""
        self._over = True
        self._ready.clear()
        self._drop()

    async def __aenter__(self: Self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _read(self) -> WatchEventsResponse:
        if self._client.closed:
            raise ClientClosed("the client is closed")
        if self._call is None:
            self._asked, self._heard = time.monotonic(), False
            self._call = self._client.stub.WatchEvents(self._cursor.request())
        call = self._call
        try:
            message = await call.read()
        except grpc.aio.AioRpcError as status:
            raise _status.to_error(status, self._client.address) from status
        except asyncio.CancelledError:
            # gRPC ends the call too: the next step begins another one, at the same place.
            self._drop()
            if self._client.closed:
                raise ClientClosed("the client was closed") from None
            raise
        if isinstance(message, WatchEventsResponse):
            return message
        # The stream has no end of its own: the daemon is shutting down.
        raise Disconnected(self._client.address)

    async def _pause(self, error: HeelerError) -> None:
        """What comes after a failure: a pause, or the end."""
        self._drop()
        lasted = 0.0 if self._heard else time.monotonic() - self._asked
        pause = self._backoff.after_failure(lasted)
        if pause is None or isinstance(error, ClientClosed) or _status.is_final(error):
            self._over = True
            raise error
        await asyncio.sleep(pause)

    def _drop(self) -> None:
        self._cursor.broke()
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def _give(self, item: WatchItem) -> WatchItem:
        if isinstance(item, Bookmark):
            self._bookmark = item
        elif isinstance(item, TaskEvent):
            state = self._cursor.request().state_id
            self._bookmark = Bookmark(revision=item.revision, state_id=state)
        return item
