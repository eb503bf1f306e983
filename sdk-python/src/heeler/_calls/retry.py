"""Repeats a unary call while the daemon is away, if that is safe."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from enum import Enum, auto
from typing import TYPE_CHECKING, TypeVar

import grpc

from heeler._calls.backoff import Backoff
from heeler._errors import status
from heeler._errors.base import ClientClosedError, HeelerError

if TYPE_CHECKING:
    from heeler._calls.connection import Connection

T = TypeVar("T")


class Retry(Enum):
    """The failures after which a call is repeated."""

    IF_TRANSIENT = auto()
    """The call has the same effect when it arrives twice."""
    IF_NOT_RECEIVED = auto()
    """The call must not arrive twice."""
    NEVER = auto()
    """The call is for this daemon, not for the next one at the same address."""

    def allows(self, error: HeelerError) -> bool:
        """Returns True if another attempt may follow this error."""
        match self:
            case Retry.IF_TRANSIENT:
                return status.is_transient(error)
            case Retry.IF_NOT_RECEIVED:
                return status.is_not_received(error)
            case Retry.NEVER:
                return False


async def retrying(
    connection: Connection,
    attempt: Callable[[], Awaitable[T]],
    retry: Retry,
    retry_for: float | None,
) -> T:
    """Makes attempts until one succeeds, one must not be repeated, or the time is over.

    No time: without limit.
    """
    backoff = Backoff(retry_for)
    while True:
        begun = time.monotonic()
        try:
            return await once(connection, attempt)
        except grpc.aio.AioRpcError as failure:
            error = status.to_error(failure, connection.address)
            lasted, connected = time.monotonic() - begun, status.was_connected(error)
            delay = backoff.after_failure(lasted, connected=connected)
            if delay is None or not retry.allows(error):
                raise error from failure
        await asyncio.sleep(delay)


async def once(connection: Connection, attempt: Callable[[], Awaitable[T]]) -> T:
    """Makes one attempt. Raises ClientClosedError if the client is closed, before or meanwhile."""
    if connection.closed:
        raise ClientClosedError("the client is closed")
    try:
        return await attempt()
    except asyncio.CancelledError:
        # gRPC cancels the calls of a channel that is closed.
        if connection.closed:
            raise ClientClosedError("the client was closed during the call") from None
        raise
