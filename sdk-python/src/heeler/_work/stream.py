"""One call of Work. It does not reconnect."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, cast

import grpc

from heeler._calls.retry import once
from heeler._errors import status
from heeler._errors.base import DisconnectedError
from heeler._work.outbox import Outbox
from heeler.v1 import WorkHeartbeat, WorkJoined, WorkRequest, WorkResponse

if TYPE_CHECKING:
    from heeler._calls.connection import Connection

_SIGNS_PER_LEASE = 3
"""Signs of presence in the time of one lease."""


class WorkStream(ABC):
    """A call whose first message has been sent. The others follow once it is answered."""

    def __init__(self, connection: Connection, first: WorkRequest) -> None:
        self._connection = connection
        self._may_send = asyncio.Event()
        self._is_closed = False
        self._call: grpc.aio.StreamStreamCall[Any, Any] = connection.raw.Work(self._requests(first))

    @abstractmethod
    def _rest(self) -> AsyncIterator[WorkRequest]:
        """Yields the messages after the first one."""

    async def first_response(self) -> WorkResponse:
        """Waits for the first response. Raises gRPC's own errors, for `retrying`."""
        try:
            response = await self._call.read()
            if response is grpc.aio.EOF:
                raise DisconnectedError(self._connection.address)
        except BaseException:
            self.close()
            raise
        self._may_send.set()
        return cast(WorkResponse, response)

    async def read(self) -> WorkResponse | None:
        """Waits for the next response. None: there is no other."""
        try:
            response = await once(self._connection, self._call.read)
        except grpc.aio.AioRpcError as failure:
            raise status.to_error(failure, self._connection.address) from failure
        return None if response is grpc.aio.EOF else cast(WorkResponse, response)

    def close(self) -> None:
        """Ends the call."""
        self._is_closed = True
        self._may_send.set()
        self._call.cancel()

    async def _requests(self, first: WorkRequest) -> AsyncIterator[WorkRequest]:
        yield first
        await self._may_send.wait()
        if not self._is_closed:
            async for request in self._rest():
                yield request


class RequestStream(WorkStream):
    """A stream with the messages of the caller."""

    def __init__(
        self, connection: Connection, first: WorkRequest, rest: AsyncIterator[WorkRequest]
    ) -> None:
        self._given = rest
        super().__init__(connection, first)

    @staticmethod
    async def open(
        connection: Connection, first: WorkRequest, rest: AsyncIterator[WorkRequest]
    ) -> tuple[RequestStream, WorkResponse]:
        """Makes the call, and returns it with its first response. Raises gRPC's own errors."""
        stream = RequestStream(connection, first, rest)
        return stream, await stream.first_response()

    def _rest(self) -> AsyncIterator[WorkRequest]:
        return self._given


class OutboxStream(WorkStream):
    """A stream with the messages of an outbox, and with signs of presence for the lease."""

    def __init__(self, connection: Connection, first: WorkRequest, outbox: Outbox) -> None:
        self._outbox = outbox
        self._wake = asyncio.Event()
        self._is_finishing = False
        self._sign_interval: float | None = None
        super().__init__(connection, first)

    async def join(self) -> WorkJoined:
        """Waits until the daemon has accepted the worker. Raises gRPC's own errors."""
        response = await self.first_response()
        if not response.HasField("joined"):
            raise DisconnectedError(self._connection.address)
        joined = response.joined
        if joined.HasField("lease"):
            self._sign_interval = joined.lease.ToTimedelta().total_seconds() / _SIGNS_PER_LEASE
        self._outbox.begin_stream(joined.acknowledged_sequence)
        return joined

    def finish(self) -> None:
        """Ends the stream once everything is sent. The daemon then ends its side."""
        self._is_finishing = True
        self._wake.set()

    def send(self) -> None:
        """Sends what is new in the outbox."""
        self._wake.set()

    def close(self) -> None:
        """Ends the call."""
        super().close()
        self._wake.set()

    async def _rest(self) -> AsyncIterator[WorkRequest]:
        while not self._is_closed:
            request = self._outbox.next()
            if request is not None:
                yield request
            elif self._is_finishing:
                return
            elif not await self._woken():
                yield WorkRequest(heartbeat=WorkHeartbeat(lease_only=True))

    async def _woken(self) -> bool:
        """Waits until there may be something to send. False: a sign of presence is due."""
        self._wake.clear()
        try:
            await asyncio.wait_for(self._wake.wait(), self._sign_interval)
        except asyncio.TimeoutError:
            return False
        return True
