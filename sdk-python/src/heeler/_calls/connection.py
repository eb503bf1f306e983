"""A connection to a daemon: the channel, the generated stub, typed errors and retries.

It knows no single call. The client and the streams are built on it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar, cast

import grpc

from heeler._calls.retry import Retry, retrying
from heeler._connection.address import Address
from heeler._connection.credentials import BearerChannel
from heeler.v1.background_tasks_pb2_grpc import BackgroundTasksStub

if TYPE_CHECKING:
    from heeler.v1.background_tasks_pb2_grpc import BackgroundTasksAsyncStub

Q = TypeVar("Q")
T = TypeVar("T")
Self = TypeVar("Self", bound="Connection")


class Connection:
    """A connection to a daemon. It reconnects by itself."""

    def __init__(
        self,
        channel: grpc.aio.Channel,
        address: Address,
        retry_for: float,
        token: str | None = None,
    ) -> None:
        self._channel = channel
        calls = channel if token is None else BearerChannel(channel, token)
        self._raw = BackgroundTasksStub(cast(grpc.aio.Channel, calls))
        self._address = address
        self._retry_for = retry_for
        self._closed = False

    @property
    def address(self) -> Address:
        """The address of the daemon."""
        return self._address

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return self._closed

    @property
    def raw(self) -> BackgroundTasksAsyncStub:
        """The generated stub on the same connection, without retries and typed errors."""
        return self._raw

    async def close(self) -> None:
        """Closes the connection and ends every call and stream on it."""
        self._closed = True
        await self._channel.close()

    async def __aenter__(self: Self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _call(
        self,
        method: Callable[[Q], Awaitable[T]],
        request: Q,
        retry: Retry = Retry.IF_TRANSIENT,
    ) -> T:
        return await retrying(self, lambda: method(request), retry, self._retry_for)
