"""One call, repeated while the daemon is away and it is safe to ask again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from enum import Enum, auto
from typing import TYPE_CHECKING, TypeVar

import grpc

from heeler import _status
from heeler._backoff import Backoff
from heeler._errors import ClientClosed, HeelerError

if TYPE_CHECKING:
    from heeler._client import Client

T = TypeVar("T")


class Repeat(Enum):
    """What a failed attempt leaves open, and so whether there may be another."""

    ALWAYS = auto()
    """The call means the same when it is heard twice."""
    IF_UNHEARD = auto()
    """Only if it cannot have been heard."""
    NEVER = auto()
    """Whoever hears it later is not the one it was meant for."""

    def allows(self, error: HeelerError) -> bool:
        """Whether there may be another attempt after one that ended like this."""
        match self:
            case Repeat.ALWAYS:
                return _status.is_transient(error)
            case Repeat.IF_UNHEARD:
                return _status.is_unheard(error)
            case Repeat.NEVER:
                return False


async def repeating(
    client: Client, attempt: Callable[[], Awaitable[T]], repeat: Repeat, patience: float
) -> T:
    """Makes the attempt, and others after it for as long as there is patience."""
    backoff = Backoff(patience)
    while True:
        begun = time.monotonic()
        try:
            return await _once(client, attempt)
        except grpc.aio.AioRpcError as status:
            error = _status.to_error(status, client.address)
            lasted = time.monotonic() - begun
            pause = backoff.after_failure(lasted) if repeat.allows(error) else None
            if pause is None:
                raise error from status
        await asyncio.sleep(pause)


async def _once(client: Client, attempt: Callable[[], Awaitable[T]]) -> T:
    if client.closed:
        raise ClientClosed("the client is closed")
    try:
        return await attempt()
    except asyncio.CancelledError:
        # A call that gRPC ended because of the close looks like one that the caller ended.
        if client.closed:
            raise ClientClosed("the client was closed") from None
        raise
