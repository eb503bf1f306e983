"""A stream of the daemon's that is taken up again where it broke.

What has been seen, and so what to ask for next, is for those who build upon it to know.
"""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import grpc

from heeler import _status
from heeler._backoff import Backoff
from heeler._errors import ClientClosed, Disconnected, HeelerError

if TYPE_CHECKING:
    from heeler._client import Client

M = TypeVar("M")
T = TypeVar("T")
Self = TypeVar("Self", bound="Resuming[Any, Any]")


class Resuming(AsyncIterator[T], Generic[M, T]):
    """Items, made of the messages of one call after another.

    A step that is cancelled, by a timeout for instance, ends the call and loses nothing: the next
    step begins another one, at the same place.
    """

    def __init__(self, client: Client, give_up_after: float | None) -> None:
        self._client = client
        self._backoff = Backoff(give_up_after)
        self._call: grpc.aio.UnaryStreamCall[Any, M] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked = 0.0
        self._heard = False
        self._ready: deque[T] = deque()
        self._over = False

    @abstractmethod
    def _ask(self) -> grpc.aio.UnaryStreamCall[Any, M]:
        """Asks, now or after a break, for what has not been seen."""

    @abstractmethod
    def _take(self, message: M) -> Iterable[T]:
        """Takes a message in, and gives what the consumer gets for it."""

    @abstractmethod
    def _broke(self) -> None:
        """The call is over, however it ended."""

    @abstractmethod
    def _is_final(self, error: HeelerError) -> bool:
        """Whether reconnecting cannot cure it."""

    def _given(self, item: T) -> None:
        """The consumer gets this now."""

    def _end(self) -> None:
        """Nothing is to be asked for any more; what was taken in is still given."""
        self._over = True

    async def __anext__(self) -> T:
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
                self._ready.extend(self._take(message))
        item = self._ready.popleft()
        self._given(item)
        return item

    async def aclose(self) -> None:
        """Ends it."""
        self._over = True
        self._ready.clear()
        self._drop()

    async def __aenter__(self: Self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        # A loop that was left by `break` closes nothing, and gRPC keeps its calls alive by itself.
        if self._call is not None and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._call.cancel)

    async def _read(self) -> M:
        if self._client.closed:
            raise ClientClosed("the client is closed")
        if self._call is None:
            self._asked, self._heard = time.monotonic(), False
            self._loop = asyncio.get_running_loop()
            self._call = self._ask()
        try:
            message = await self._call.read()
        except grpc.aio.AioRpcError as status:
            raise _status.to_error(status, self._client.address) from status
        except asyncio.CancelledError:
            # gRPC ends the call too.
            self._drop()
            if self._client.closed:
                raise ClientClosed("the client was closed") from None
            raise
        if message is grpc.aio.EOF:
            # No such stream ends without a last message or an error: the daemon is shutting down.
            raise Disconnected(self._client.address)
        return cast(M, message)

    async def _pause(self, error: HeelerError) -> None:
        """What comes after a failure: a pause, or the end."""
        self._drop()
        lasted = 0.0 if self._heard else time.monotonic() - self._asked
        pause = self._backoff.after_failure(lasted)
        if pause is None or isinstance(error, ClientClosed) or self._is_final(error):
            self._over = True
            raise error
        await asyncio.sleep(pause)

    def _drop(self) -> None:
        self._broke()
        if self._call is not None:
            self._call.cancel()
            self._call = None
