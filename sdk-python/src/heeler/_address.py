"""Where a daemon listens: parsed once, so that no later code meets a bad address. Opens nothing."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from heeler import _paths
from heeler._errors import AddressError

ENV = "HEELER_ADDR"
"""The environment variable that overrides the default address."""

_MAX_PATH = 107
"""What a socket address has room for, less its closing NUL."""


@dataclass(frozen=True)
class Address:
    """The address of a daemon: `unix:` and the absolute path of its socket."""

    path: Path

    def __post_init__(self) -> None:
        """Refuses a path that no socket can have."""
        size = len(os.fsencode(self.path))
        if not self.path.is_absolute():
            raise AddressError(
                f"the socket path `{self.path}` is not absolute: write unix:/absolute/path"
            )
        if "\0" in str(self.path):
            raise AddressError(f"the socket path {str(self.path)!r} contains a NUL")
        if size > _MAX_PATH:
            raise AddressError(
                f"the socket path `{self.path}` has {size} bytes, and at most {_MAX_PATH} fit"
            )

    @classmethod
    def parse(cls, text: str) -> Address:
        """Reads `unix:/absolute/path`, or `unix:///absolute/path` as gRPC spells it."""
        if text.startswith("tcp:"):
            raise AddressError(
                f"`{text}`: this version reaches a daemon by its Unix socket only: "
                "write unix:/absolute/path"
            )
        for prefix in ("unix://", "unix:"):
            if text.startswith(prefix):
                return cls(Path(text.removeprefix(prefix)))
        raise AddressError(f"`{text}` is no address: write unix:/absolute/path")

    @classmethod
    def default(cls) -> Address:
        """What `HEELER_ADDR` says, else this user's own socket."""
        text = os.environ.get(ENV, "")
        return cls.parse(text) if text else cls(_paths.default_socket())

    def start_command(self) -> str:
        """The command that would start a daemon here."""
        try:
            own = _paths.default_socket()
        except AddressError:
            own = None
        return "heeler serve" if own == self.path else f"heeler serve --listen {self}"

    def __str__(self) -> str:
        return f"unix:{self.path}"
