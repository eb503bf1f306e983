"""Converts the status of a call to an exception, and says whether the call may be retried."""

from __future__ import annotations

import re
import ssl

import grpc
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from google.rpc.status_pb2 import Status

from heeler._connection import channel
from heeler._connection.address import Address, UnixAddress
from heeler._errors.base import (
    DaemonConnectionError,
    DaemonNotRunningError,
    DaemonUnreachableError,
    DisconnectedError,
    HeelerError,
)
from heeler._errors.refused import FieldViolation, RefusalDetails, RefusedError
from heeler.v1 import errors

_DOMAIN = "heeler.dev"
_DETAILS_KEY = "grpc-status-details-bin"
_CONNECT_FAILURE = re.compile("failed to connect|errors resolving|resolution failed")
_UNTRUSTED = re.compile("(?i)ssl|certificate|verification")
"""gRPC has no codes for these failures, only texts."""
_BY_REASON: dict[str | None, type[RefusedError]] = {
    error.REASON: error for error in (getattr(errors, name) for name in errors.__all__)
}

_FINAL = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.ALREADY_EXISTS,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.UNAUTHENTICATED,
    }
)


def to_error(status: grpc.aio.AioRpcError, address: Address) -> HeelerError:
    """Returns the exception for the status of a call to the address."""
    details = _sent_details(status)
    if details is not None:
        return to_refusal(status.code(), status.details() or "", details)
    if not _is_broken_connection(status):
        return RefusedError(RefusalDetails(status.code(), status.details() or ""))
    if _CONNECT_FAILURE.search(status.details() or ""):
        return to_connect_error(_connect_failure(status.details() or "", address), address)
    return DisconnectedError(address)


def to_connect_error(cause: OSError | None, address: Address) -> DaemonConnectionError:
    """Returns the exception for a failed connection. No cause: a connection is possible by now."""
    if cause is None or isinstance(cause, (FileNotFoundError, ConnectionRefusedError)):
        return DaemonNotRunningError(address)
    return DaemonUnreachableError(address, cause)


def to_refusal(code: grpc.StatusCode, message: str, status: Status) -> RefusedError:
    """Returns the exception for a status that the daemon sent."""
    info, bad = ErrorInfo(), BadRequest()
    for detail in status.details:
        # Unpack leaves the message alone if the detail has another type.
        _ = detail.Unpack(info) or detail.Unpack(bad)
    ours = info.domain == _DOMAIN
    details = RefusalDetails(
        code=code,
        message=message,
        reason=info.reason if ours else None,
        metadata=dict(info.metadata) if ours else {},
        fields=tuple(FieldViolation(v.field, v.description) for v in bad.field_violations),
    )
    return _BY_REASON.get(details.reason, RefusedError)(details)


def is_not_received(error: HeelerError) -> bool:
    """Returns True if the daemon has not begun the call and may accept it a moment later."""
    if isinstance(error, RefusedError):
        return error.code is grpc.StatusCode.UNAVAILABLE
    if isinstance(error, DaemonUnreachableError):
        return not isinstance(error.cause, (PermissionError, ssl.SSLError))
    return isinstance(error, DaemonNotRunningError)


def was_connected(error: HeelerError) -> bool:
    """Returns True unless the attempt failed to connect."""
    return not isinstance(error, (DaemonNotRunningError, DaemonUnreachableError))


def is_transient(error: HeelerError) -> bool:
    """Returns True if the same call may succeed a moment later: the daemon is restarting."""
    return is_not_received(error) or isinstance(error, DisconnectedError)


def is_final(error: HeelerError) -> bool:
    """Returns True if the same call would be refused again at any later time."""
    return isinstance(error, RefusedError) and error.code in _FINAL


def _connect_failure(message: str, address: Address) -> OSError | None:
    if isinstance(address, UnixAddress):
        return channel.probe(address)
    if "Connection refused" in message:
        return ConnectionRefusedError()
    # The end of gRPC's message is the error of the layer that failed.
    failure = message.rpartition("last error: ")[2]
    return ssl.SSLError(failure) if _UNTRUSTED.search(failure) else OSError(failure)


def _sent_details(status: grpc.aio.AioRpcError) -> Status | None:
    for key, value in status.trailing_metadata() or ():
        if key == _DETAILS_KEY and isinstance(value, bytes):
            return Status.FromString(value)
    return None


def _is_broken_connection(status: grpc.aio.AioRpcError) -> bool:
    """Returns True if gRPC made this status, which has no details, because the connection broke.

    The daemon sends details with each refusal. Only gRPC's message tells a reset stream apart, or a
    message that was sent on a stream whose end had not been read.
    """
    if status.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
        return True
    message = status.details() or ""
    return "RST_STREAM" in message or message == "Internal error from Core"
