"""Connects to a daemon: picks the address and the credentials, and makes the client."""

from __future__ import annotations

import os
from collections.abc import Generator

from heeler._calls.client import Client
from heeler._connection.address import Address
from heeler._connection.channel import open_channel
from heeler._connection.credentials import Credentials
from heeler._errors.status import to_connect_error
from heeler._options.time import Span, to_seconds

RETRY_FOR = 5.0
"""Default time in seconds for which a call is repeated. A restart takes a fraction of it."""


class Connecting:
    """A connection to be made: await it, or use it with `async with`, which also closes it."""

    def __init__(
        self, address: str | Address | None, retry_for: Span, credentials: Credentials
    ) -> None:
        self._address = address
        self._credentials = credentials
        self._retry_for = to_seconds(retry_for)
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
            channel = await open_channel(address, self._credentials)
        except OSError as cause:
            raise to_connect_error(cause, address) from cause
        return Client(channel, address, self._retry_for, token)


def connect(
    address: str | Address | None = None,
    *,
    retry_for: Span = RETRY_FOR,
    token: str | None = None,
    token_file: str | os.PathLike[str] | None = None,
    tls_ca: str | os.PathLike[str] | None = None,
) -> Connecting:
    """Connects to the daemon at the address, else at `HEELER_ADDR`, else to the user's own.

    It starts no daemon. `retry_for` is the time for which calls are repeated while the daemon is
    away; 0: not at all.

    Over TCP the client sends a token: `token`, else the content of `token_file`, else of the file
    that `HEELER_TOKEN_FILE` names, else, on loopback, the token of the user's own daemon. Over TLS
    it trusts the certificate authority in the PEM file `tls_ca`, else in the file that
    `HEELER_TLS_CA` names, else the authorities of the system.
    """
    return Connecting(address, retry_for, Credentials(token, token_file, tls_ca))
