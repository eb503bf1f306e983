"""The transport: HTTP/2 over a Unix socket with a trusted peer, or over TCP."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import struct
from urllib.parse import quote

import grpc

from heeler._connection.address import Address, Scheme, TcpAddress, UnixAddress
from heeler._connection.credentials import Credentials

_BACKLOG_FULL_DELAY = 0.005
"""Seconds between attempts while the backlog of the daemon's socket is full."""
_BACKLOG_FULL_ATTEMPTS = 1000
"""Number of such attempts: about five seconds in all."""

_OPTIONS = [
    # The daemon, which is the user's own, bounds the size of its answers.
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # By default gRPC waits up to two minutes between connections; an attached client has to be back
    # within a short reattach window.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 200),
    ("grpc.enable_http_proxy", 0),
    # Otherwise channels share one connection, and with it their delays.
    ("grpc.use_local_subchannel_pool", 1),
]
_UNIX_OPTIONS = [("grpc.default_authority", "localhost")]
_TCP_OPTIONS = [
    # Detects a dead machine while calls are open.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.max_pings_without_data", 0),
]
_CONNECT_TIMEOUT = 10.0
"""Seconds for the first TCP connection."""


async def open_channel(address: Address, credentials: Credentials) -> grpc.aio.Channel:
    """Opens a channel to a daemon that listens now. The channel reconnects by itself.

    Raises OSError if no daemon listens, or the peer is not trusted.
    """
    match address:
        case UnixAddress():
            return await _open_unix(address)
        case TcpAddress():
            return await _open_tcp(address, credentials)
    raise TypeError(f"unknown kind of address: {address!r}")


async def _open_tcp(address: TcpAddress, credentials: Credentials) -> grpc.aio.Channel:
    tls = credentials.channel_credentials() if address.scheme is Scheme.TLS else None
    try:
        connecting = asyncio.open_connection(address.host, address.port)
        _, writer = await asyncio.wait_for(connecting, _CONNECT_TIMEOUT)
    except asyncio.TimeoutError as error:
        raise OSError(errno.ETIMEDOUT, f"no answer within {_CONNECT_TIMEOUT:g} s") from error
    writer.close()
    # Names are resolved again at each connection.
    target = f"dns:///{address.host_and_port()}"
    options = _OPTIONS + _TCP_OPTIONS
    if tls is not None:
        return grpc.aio.secure_channel(target, tls, options=options)
    return grpc.aio.insecure_channel(target, options=options)


async def _open_unix(address: UnixAddress) -> grpc.aio.Channel:
    cause, attempts = probe(address), _BACKLOG_FULL_ATTEMPTS
    while isinstance(cause, BlockingIOError) and attempts > 0:
        await asyncio.sleep(_BACKLOG_FULL_DELAY)
        cause, attempts = probe(address), attempts - 1
    if cause is not None:
        raise cause
    return grpc.aio.insecure_channel(
        f"unix:{quote(str(address.path))}", options=_OPTIONS + _UNIX_OPTIONS
    )


def probe(address: UnixAddress) -> OSError | None:
    """Returns the reason why a connection fails, or None. gRPC has only a text for it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.setblocking(False)
        try:
            connection.connect(os.fsencode(address.path))
            return _untrusted_peer(connection)
        except OSError as error:
            return error


def _untrusted_peer(connection: socket.socket) -> OSError | None:
    """Returns an error unless the peer is this user or root; root itself trusts any user.

    Requests may contain secrets.
    """
    size = struct.calcsize("3i")
    _, peer, _ = struct.unpack(
        "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    )
    own = os.geteuid()
    if own == 0 or peer in (own, 0):
        return None
    return PermissionError(errno.EACCES, f"the listener runs as user {peer}, not user {own}")
