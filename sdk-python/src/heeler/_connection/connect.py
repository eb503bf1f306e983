"""Connects to a daemon: picks the address and the credentials, and makes the client."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Generator
from functools import partial

from heeler._calls.client import Client
from heeler._connection.address import ENV, Address
from heeler._connection.channel import open_channel
from heeler._connection.credentials import Credentials
from heeler._connection.start import start_daemon
from heeler._errors.base import DaemonNotRunningError
from heeler._errors.status import to_connect_error
from heeler._options.time import Span, to_seconds

RETRY_FOR = 5.0
"""Default time in seconds for which a call is repeated. A restart takes a fraction of it."""

Start = Callable[[], Awaitable[Address]]
"""Starts a daemon and returns its address."""


class Connecting:
    """A connection to be made: await it, or use it with `async with`, which also closes it."""

    def __init__(
        self,
        address: str | Address | None,
        retry_for: Span,
        credentials: Credentials,
        start: Start | None = None,
    ) -> None:
        self._address = address
        self._start = start
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
        address = _to_address(self._address)
        if self._start is None or self._address is not None or os.environ.get(ENV):
            return await self._connect_to(address)
        try:
            return await self._connect_to(address)
        except DaemonNotRunningError:
            return await self._connect_to(await self._start())

    async def _connect_to(self, address: Address) -> Client:
        token = self._credentials.token_for(address)
        try:
            channel = await open_channel(address, self._credentials)
        except OSError as cause:
            raise to_connect_error(cause, address) from cause
        return Client(channel, address, self._retry_for, token)


def _to_address(given: str | Address | None) -> Address:
    match given:
        case None:
            return Address.default()
        case str(text):
            return Address.parse(text)
        case Address():
            return given


def connect(
    address: str | Address | None = None,
    *,
    retry_for: Span = RETRY_FOR,
    token: str | None = None,
    token_file: str | os.PathLike[str] | None = None,
    tls_ca: str | os.PathLike[str] | None = None,
) -> Connecting:
    """Connects to the daemon at the address, else at `HEELER_ADDR`, else to the user's own.

    It starts no daemon; `connect_or_start` does. `retry_for` is the time for which calls are
    repeated while the daemon is away; 0: not at all.

    Over TCP the client sends a token: `token`, else the content of `token_file`, else of the file
    that `HEELER_TOKEN_FILE` names; else, on loopback and at the address in `HEELER_ADDR`, the
    token of the task that the program runs in (`HEELER_TOKEN`); else, on loopback, the token of
    the user's own daemon. Over TLS it trusts the certificate authority in the PEM file `tls_ca`,
    else in the file that `HEELER_TLS_CA` names, else the authorities of the system.
    """
    return Connecting(address, retry_for, Credentials(token, token_file, tls_ca))


def connect_or_start(
    address: str | Address | None = None,
    *,
    program: str | os.PathLike[str] | None = None,
    retry_for: Span = RETRY_FOR,
    token: str | None = None,
    token_file: str | os.PathLike[str] | None = None,
    tls_ca: str | os.PathLike[str] | None = None,
) -> Connecting:
    """Connects as `connect` does. If the user's own daemon is not running, it is started first.

    With an address, given or in `HEELER_ADDR`, it only connects. Otherwise it runs `heeler start`,
    with `program` as `heeler`, else the program that `HEELER_BINARY` names, else the `heeler` on
    the PATH. Raises NotInstalledError if there is none, and DaemonStartError if it fails. The
    daemon outlives the caller.
    """
    credentials = Credentials(token, token_file, tls_ca)
    return Connecting(address, retry_for, credentials, partial(start_daemon, program))
