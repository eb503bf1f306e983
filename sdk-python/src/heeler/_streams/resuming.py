"""A stream of the daemon that resumes where it broke.

It reconnects and paces the attempts. The subclass knows the position, and so the next request.
"""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import grpc

from heeler._calls.backoff import Backoff
from heeler._errors import status
from heeler._errors.base import ClientClosedError, DisconnectedError, HeelerError

if TYPE_CHECKING:
    from heeler._calls.connection import Connection

M = TypeVar("M")
T = TypeVar("T")
Self = TypeVar("Self", bound="ResumingStream[Any, Any]")


class ResumingStream(AsyncIterator[T], Generic[M, T]):
    """Items made from the messages of one call after another.

    A step that is cancelled, for example by a timeout, ends the call and loses nothing: the next
    step begins another call at the same position.
    """

    def __init__(self, connection: Connection, give_up_after: float | None) -> None:
        self._connection = connection
        self._backoff = Backoff(give_up_after)
        self._call: grpc.aio.UnaryStreamCall[Any, M] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._call_time = 0.0
        self._answered = False
        self._ready: deque[T] = deque()
        self._ended = False

    @abstractmethod
    def _open(self) -> grpc.aio.UnaryStreamCall[Any, M]:
        """Begins a call at the present position."""

    @abstractmethod
    def _receive(self, message: M) -> Iterable[T]:
        """Advances the position past a message and returns the items for the consumer."""

    @abstractmethod
    def _is_final(self, error: HeelerError) -> bool:
        """Returns True if reconnecting cannot help."""

    def _closed(self) -> None:
        """Called when a call has ended, for any reason."""

    def _delivered(self, item: T) -> None:
        """Called when the consumer gets the item."""

    def _finish(self) -> None:
        """Begins no further call. Items that were received are still delivered."""
        self._ended = True

    async def __anext__(self) -> T:
        while not self._ready:
            if self._ended:
                raise StopAsyncIteration
            try:
                message = await self._read()
            except HeelerError as error:
                await self._pause(error)
            except asyncio.CancelledError:
                if not self._was_closed():
                    raise
            else:
                self._answered = True
                self._backoff.reset()
                self._ready.extend(self._receive(message))
        item = self._ready.popleft()
        self._delivered(item)
        return item

    async def aclose(self) -> None:
        """Ends the stream."""
        self._ended = True
        self._ready.clear()
        self._drop_call()

    async def __aenter__(self: Self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        # A loop left by `break` closes nothing, and gRPC keeps its calls alive by itself.
        if self._call is not None and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._call.cancel)

    async def _read(self) -> M:
        if self._connection.closed:
            raise ClientClosedError("the client is closed")
        if self._call is None:
            self._call_time, self._answered = time.monotonic(), False
            self._loop = asyncio.get_running_loop()
            self._call = self._open()
        try:
            message = await self._call.read()
        except grpc.aio.AioRpcError as failure:
            raise status.to_error(failure, self._connection.address) from failure
        except asyncio.CancelledError:
            # gRPC ends the call as well.
            self._drop_call()
            if self._connection.closed:
                raise ClientClosedError("the client was closed during the call") from None
            raise
        if message is grpc.aio.EOF:
            # No stream ends without a last message or an error: the daemon is shutting down.
            raise DisconnectedError(self._connection.address)
        return cast(M, message)

    async def _pause(self, error: HeelerError) -> None:
        """Waits after a failure, or raises it if there is no further attempt."""
        self._drop_call()
        lasted = 0.0 if self._answered else time.monotonic() - self._call_time
        delay = self._backoff.after_failure(lasted, connected=status.was_connected(error))
        if delay is None or isinstance(error, ClientClosedError) or self._is_final(error):
            self._ended = True
            raise error
        await asyncio.sleep(delay)

    def _was_closed(self) -> bool:
        """Returns True if `aclose` has ended the call, which is no cancellation of the reader."""
        return self._ended and not _is_cancelled()

    def _drop_call(self) -> None:
        self._closed()
        if self._call is not None:
            self._call.cancel()
            self._call = None


def _is_cancelled() -> bool:
    """Returns True if the present task was cancelled. Python 3.10 cannot tell: then False."""
    cancelling: Callable[[], int] | None = getattr(asyncio.current_task(), "cancelling", None)
    return cancelling is not None and cancelling() > 0
