"""From an address to a client: what is sought where, and what is said when nobody is there."""

from __future__ import annotations

from collections.abc import Generator

from heeler import _connect, _status, _time
from heeler._address import Address
from heeler._client import Client
from heeler._time import Span

RETRY_FOR = 5.0
"""For how many seconds a call is repeated, unless told: a restart takes a fraction of it."""


class Connecting:
    """A client to be: await it, or enter it with `async with`, which also closes it."""

    def __init__(self, address: str | Address | None, retry_for: Span) -> None:
        self._address = address
        self._retry_for = _time.to_seconds(retry_for)
        self._client: Client | None = None

    def __await__(self) -> Generator[None, None, Client]:
        return self._connect().__await__()

    async def __aenter__(self) -> Client:
        self._client = await self._connect()
        return self._client

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.close()

    async def _connect(self) -> Client:
        match self._address:
            case None:
                address = Address.default()
            case str(text):
                address = Address.parse(text)
            case Address():
                address = self._address
        try:
            channel = await _connect.open_channel(address)
        except OSError as cause:
            raise _status.to_connect_error(cause, address) from cause
        return Client(channel, address, self._retry_for)


def connect(address: str | Address | None = None, *, retry_for: Span = RETRY_FOR) -> Connecting:
    """Connects to the daemon at this address, else at `HEELER_ADDR`, else to the user's own.

    Starts none. `retry_for` is how long calls are repeated while the daemon is away; 0: not at all.
    """
    return Connecting(address, retry_for)
