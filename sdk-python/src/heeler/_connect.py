"""The transport: HTTP/2 over a Unix socket whose other end is trusted, or over TCP."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import struct
from urllib.parse import quote

import grpc

from heeler._address import Address, Scheme, TcpAddress, UnixAddress
from heeler._credentials import Credentials

_QUEUE_FULL_PAUSE = 0.005
"""How long to pause when the daemon's queue is full, which the kernel says at once."""
_QUEUE_FULL_TRIES = 1000
"""How often: about five seconds in all."""

_OPTIONS = [
    # A page is as large as its tasks; the daemon, which is the user's own, bounds it.
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # gRPC has delays of its own between connections, of up to two minutes unless told; a holder may
    # have to be back within a short window.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 200),
    ("grpc.enable_http_proxy", 0),
    # Channels would else share one connection, and with it one another's delays.
    ("grpc.use_local_subchannel_pool", 1),
]
_UNIX_OPTIONS = [("grpc.default_authority", "localhost")]
_TCP_OPTIONS = [
    # A machine that is gone says no goodbye: it is asked while calls are open.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.max_pings_without_data", 0),
]
_CONNECT_LIMIT = 10.0
"""How many seconds a machine may take to take a connection."""


async def open_channel(address: Address, credentials: Credentials) -> grpc.aio.Channel:
    """A channel to a daemon that listens there now; it comes back by itself when it breaks.

    OSError: nobody does, or somebody else.
    """
    match address:
        case UnixAddress():
            return await _open_unix(address)
        case TcpAddress():
            return await _open_tcp(address, credentials)
    raise TypeError(f"{address!r} is no address")


async def _open_tcp(address: TcpAddress, credentials: Credentials) -> grpc.aio.Channel:
    tls = credentials.channel_credentials() if address.scheme is Scheme.TLS else None
    try:
        probe = asyncio.open_connection(address.host, address.port)
        _, writer = await asyncio.wait_for(probe, _CONNECT_LIMIT)
    except asyncio.TimeoutError as error:
        raise OSError(errno.ETIMEDOUT, f"no answer within {_CONNECT_LIMIT:g} s") from error
    writer.close()
    # Names are asked for anew at each connection; numbers are taken as they are.
    target = f"dns:///{address.host_and_port()}"
    options = _OPTIONS + _TCP_OPTIONS
    if tls is not None:
        return grpc.aio.secure_channel(target, tls, options=options)
    return grpc.aio.insecure_channel(target, options=options)


async def _open_unix(address: UnixAddress) -> grpc.aio.Channel:
    cause, tries = look(address), _QUEUE_FULL_TRIES
    while isinstance(cause, BlockingIOError) and tries > 0:
        await asyncio.sleep(_QUEUE_FULL_PAUSE)
        cause, tries = look(address), tries - 1
    if cause is not None:
        raise cause
    return grpc.aio.insecure_channel(
        f"unix:{quote(str(address.path))}", options=_OPTIONS + _UNIX_OPTIONS
    )


def look(address: UnixAddress) -> OSError | None:
    """Why a connection cannot be made now, which gRPC tells in words only; None: it can."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(os.fsencode(address.path))
            return _foreign(probe)
        except OSError as error:
            return error


def _foreign(connected: socket.socket) -> OSError | None:
    """What is sent may hold secrets: only this user's daemon, or root's, may have it.

    Root itself may talk to anybody's.
    """
    size = struct.calcsize("3i")
    _, peer, _ = struct.unpack(
        "3i", connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    )
    own = os.geteuid()
    if own == 0 or peer in (own, 0):
        return None
    text = f"whoever listens there is user {peer}, not user {own}"
    return PermissionError(errno.EACCES, text)
