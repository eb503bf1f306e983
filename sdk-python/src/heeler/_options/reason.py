"""The reason of a stop or a detach, from the exception that ended the caller."""

from __future__ import annotations

_MAX_BYTES = 4096
"""The daemon refuses longer reasons."""


def reason_of(cause: BaseException, otherwise: str) -> str:
    """Returns the message of the exception, cut to what the daemon accepts."""
    text = str(cause)
    data = (text if text.strip() else otherwise).encode(errors="replace")
    return data[:_MAX_BYTES].decode(errors="ignore")
