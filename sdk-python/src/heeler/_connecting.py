"""From an address to a client: what is sought where, and what is said when nobody is there."""

from __future__ import annotations

import os
from collections.abc import Generator

from heeler import _connect, _status, _time
from heeler._address import Address
from heeler._client import Client
from heeler._credentials import Credentials
from heeler._time import Span

RETRY_FOR = 5.0
"""For how many seconds a call is repeated, unless told: a restart takes a fraction of it."""


class Connecting:
    """A client to be: await it, or enter it with `async with`, which also closes it."""

    def __init__(
        self, address: str | Address | None, retry_for: Span, credentials: Credentials
    ) -> None:
        self._address = address
        self._credentials = credentials
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
        token = self._credentials.token_for(address)
        try:
            channel = await _connect.open_channel(address, self._credentials)
        except OSError as cause:
            raise _status.to_connect_error(cause, address) from cause
        return Client(channel, address, self._retry_for, token)


def connect(
    address: str | Address | None = None,
    *,
    retry_for: Span = RETRY_FOR,
    token: str | None = None,
    token_file: str | os.PathLike[str] | None = None,
    tls_ca: str | os.PathLike[str] | None = None,
) -> Connecting:
    """Connects to the daemon at this address, else at `HEELER_ADDR`, else to the user's own.

    Starts none. `retry_for` is how long calls are repeated while the daemon is away; 0: not at all.

    Over TCP a token is shown: this one, else that in `token_file`, else in the file that
    `HEELER_TOKEN_FILE` names, else, on loopback, that of the user's own daemon. Over TLS the
    authority in `tls_ca` is believed, a file in PEM form, else in that which `HEELER_TLS_CA` names,
    else those of the system.
    """
    return Connecting(address, retry_for, Credentials(token, token_file, tls_ca))
