"""The address of a daemon, checked once when it is parsed. Opens no connection."""

from __future__ import annotations

import ipaddress
import os
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from heeler._connection import paths
from heeler._errors.base import AddressError

ENV = "HEELER_ADDR"
"""The environment variable that overrides the default address."""

_MAX_PATH = 107
"""The size of a socket address in bytes, without the closing NUL."""
_HOST_AND_PORT = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([\w.-]+)):([0-9]{1,5})", re.ASCII)


class Address(ABC):
    """The address of a daemon.

    `unix:/absolute/path`, or `tcp:HOST:PORT` on this machine's loopback, or `tls:HOST:PORT`.
    """

    @staticmethod
    def parse(text: str) -> Address:
        """Parses an address. A path may also have gRPC's form, `unix:///absolute/path`."""
        for prefix in ("unix://", "unix:"):
            if text.startswith(prefix):
                return UnixAddress(Path(text.removeprefix(prefix)))
        scheme, colon, rest = text.partition(":")
        if not colon or scheme not in ("tcp", "tls"):
            raise AddressError(
                f"`{text}` is not an address: "
                "write unix:/absolute/path, tcp:HOST:PORT or tls:HOST:PORT"
            )
        found = _HOST_AND_PORT.fullmatch(rest)
        if found is None:
            raise AddressError(
                f"`{text}` has no valid host and port: write {scheme}:HOST:PORT, "
                f"e.g. {scheme}:127.0.0.1:7117 or {scheme}:[::1]:7117"
            )
        return TcpAddress(found[1] or found[2], int(found[3]), Scheme(scheme))

    @staticmethod
    def default() -> Address:
        """Returns the address in `HEELER_ADDR`, else the socket of this user's daemon."""
        text = os.environ.get(ENV, "")
        return Address.parse(text) if text else UnixAddress(paths.default_socket())

    def is_from_environment(self) -> bool:
        """Returns True for the address in `HEELER_ADDR`.

        Inside of a task that is the address of the daemon that runs it.
        """
        try:
            return self == Address.parse(os.environ.get(ENV, ""))
        except AddressError:
            return False

    @abstractmethod
    def start_command(self) -> str:
        """Returns the command that starts a daemon at this address."""


@dataclass(frozen=True)
class UnixAddress(Address):
    """The absolute path of a socket."""

    path: Path

    def __post_init__(self) -> None:
        """Raises AddressError for a path that no socket can have."""
        size = len(os.fsencode(self.path))
        if not self.path.is_absolute():
            raise AddressError(
                f"the socket path `{self.path}` is not absolute: write unix:/absolute/path"
            )
        if "\0" in str(self.path):
            raise AddressError(f"the socket path {str(self.path)!r} contains a NUL")
        if size > _MAX_PATH:
            raise AddressError(
                f"the socket path `{self.path}` has {size} bytes: at most {_MAX_PATH} are allowed"
            )

    def start_command(self) -> str:
        """Returns the command that starts a daemon at this address."""
        try:
            own = paths.default_socket()
        except AddressError:
            own = None
        return "heeler serve" if own == self.path else f"heeler serve --listen {self}"

    def __str__(self) -> str:
        return f"unix:{self.path}"


class Scheme(Enum):
    """The protection of a TCP connection."""

    TCP = "tcp"
    """None: only for the loopback of this machine."""
    TLS = "tls"
    """TLS."""


@dataclass(frozen=True)
class TcpAddress(Address):
    """A host, by name or number, and a port."""

    host: str
    port: int
    scheme: Scheme = Scheme.TLS

    def __post_init__(self) -> None:
        """Raises AddressError for a bad port or host, or for a remote host without TLS."""
        if not 0 < self.port < 65536:
            raise AddressError(f"`{self}` has no valid host and port: a port is 1 to 65535")
        if ":" in self.host and not _is_number(self.host):
            raise AddressError(
                f"`{self}` has no valid host and port: `{self.host}` is not an IPv6 address"
            )
        if self.scheme is Scheme.TCP and not self.is_loopback():
            raise AddressError(
                f"`{self}` is not on the loopback of this machine, and tcp: is not encrypted: "
                "write tls:HOST:PORT"
            )

    def is_loopback(self) -> bool:
        """Returns True if only this machine can reach the host."""
        if _is_number(self.host):
            return ipaddress.ip_address(self.host).is_loopback
        return self.host.lower() == "localhost"

    def host_and_port(self) -> str:
        """Returns host and port in gRPC's form."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def start_command(self) -> str:
        """Returns the command that starts a daemon at this address."""
        match self.scheme:
            case Scheme.TCP:
                return f"heeler serve --listen {self}"
            case Scheme.TLS:
                listen = f"tcp:0.0.0.0:{self.port}"
                return f"heeler serve --listen {listen} --tls-cert FILE --tls-key FILE"

    def __str__(self) -> str:
        return f"{self.scheme.value}:{self.host_and_port()}"


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
