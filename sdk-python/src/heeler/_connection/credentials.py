"""The token and the certificate authorities for a daemon over TCP.

A Unix socket needs neither: the kernel identifies both ends.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from heeler._connection import paths
from heeler._connection.address import Address, TcpAddress
from heeler._errors.base import CredentialsError

TOKEN_FILE_ENV = "HEELER_TOKEN_FILE"
"""The environment variable that names the file with the token."""
TASK_TOKEN_ENV = "HEELER_TOKEN"
"""The environment variable with the token of the task that the program runs in."""
TLS_CA_ENV = "HEELER_TLS_CA"
"""The environment variable that names the file with the authority's certificate."""


@dataclass(frozen=True)
class Credentials:
    """The credentials that the caller gave."""

    token: str | None = field(default=None, repr=False)
    token_file: str | os.PathLike[str] | None = None
    tls_ca: str | os.PathLike[str] | None = None

    def token_for(self, address: Address) -> str | None:
        """Returns the token for the address, if one is known."""
        if not isinstance(address, TcpAddress):
            return None
        if self.token is not None:
            return _checked(self.token)
        named = self.token_file or os.environ.get(TOKEN_FILE_ENV)
        if named:
            return _checked(_read(Path(named), "token file").decode(errors="replace").strip())
        # Only the daemon that runs the task knows its token, so no other machine gets to see it. On
        # loopback it comes before the token of the user's own daemon, which would give a task the
        # rights of the user.
        is_own = address.is_loopback() or address.is_from_environment()
        if (of_task := os.environ.get(TASK_TOKEN_ENV)) and is_own:
            return _checked(of_task)
        if not address.is_loopback():
            return None
        try:
            return _checked(paths.token_file().read_text().strip())
        except (OSError, RuntimeError):
            # The refusal of the daemon says what to do.
            return None

    def channel_credentials(self) -> grpc.ChannelCredentials:
        """Returns the credentials for TLS."""
        named = self.tls_ca or os.environ.get(TLS_CA_ENV) or _system_authorities()
        if not named:
            return grpc.ssl_channel_credentials()
        roots = _read(Path(named), "certificate authorities in")
        if b"-----BEGIN CERTIFICATE-----" not in roots:
            raise CredentialsError(f"{named} contains no certificate in PEM form")
        return grpc.ssl_channel_credentials(roots)


class BearerChannel:
    """A channel that sends a token with each call."""

    def __init__(self, channel: grpc.aio.Channel, token: str) -> None:
        self._channel = channel
        self._metadata = ("authorization", f"Bearer {token}")

    def unary_unary(self, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        """Returns a callable with one answer."""
        return self._with_token(self._channel.unary_unary(*args, **kwargs))

    def unary_stream(self, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        """Returns a callable with a stream of answers."""
        return self._with_token(self._channel.unary_stream(*args, **kwargs))

    def stream_stream(self, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        """Returns a callable with a stream of requests and one of answers."""
        return self._with_token(self._channel.stream_stream(*args, **kwargs))

    def _with_token(self, make: Callable[..., Any]) -> Callable[..., Any]:
        def call(request: Any, *, metadata: Any = None, **rest: Any) -> Any:
            return make(request, metadata=(*(metadata or ()), self._metadata), **rest)

        return call


def _checked(token: str) -> str:
    if not re.fullmatch(r"[!-~]+", token):
        raise CredentialsError("the token is empty or has characters that no token has")
    return token


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        text = f"cannot read the {what} {path}: {error.strerror or error}"
        raise CredentialsError(text) from error


def _system_authorities() -> str | None:
    """Returns the file of the system. gRPC has authorities of its own, which may differ."""
    return ssl.get_default_verify_paths().cafile
