"""From the status of a call to the exception that it stands for, and to what may be done next."""

from __future__ import annotations

import grpc
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from google.rpc.status_pb2 import Status

from heeler import _connect
from heeler._address import Address, UnixAddress
from heeler._errors import (
    Details,
    Disconnected,
    FieldViolation,
    HeelerError,
    NotRunning,
    Refused,
    Unreachable,
    Unreached,
)

_DOMAIN = "heeler.dev"
_DETAILS_KEY = "grpc-status-details-bin"
_KNOWN = {kind.REASON: kind for kind in Refused.__subclasses__()}

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
    """Reads the status of a call to this address."""
    sent = _sent_details(status)
    if sent is not None:
        return refusal(status.code(), status.details() or "", sent)
    if not _broke(status):
        return Refused(Details(status.code(), status.details() or ""))
    if "failed to connect" in (status.details() or ""):
        return to_connect_error(_cause(status.details() or "", address), address)
    return Disconnected(address)


def _cause(words: str, address: Address) -> OSError | None:
    if isinstance(address, UnixAddress):
        return _connect.look(address)
    if "Connection refused" in words:
        return ConnectionRefusedError()
    # The last of gRPC's words on it are those of whatever failed, such as a certificate.
    return OSError(words.rpartition("last error: ")[2])


def to_connect_error(cause: OSError | None, address: Address) -> Unreached:
    """Reads why there is no connection to this address; None: it was so only a moment ago."""
    if cause is None or isinstance(cause, (FileNotFoundError, ConnectionRefusedError)):
        return NotRunning(address)
    return Unreachable(address, cause)


def refusal(code: grpc.StatusCode, message: str, status: Status) -> Refused:
    """The exception for a status that the daemon has sent."""
    info, bad = ErrorInfo(), BadRequest()
    for detail in status.details:
        # Unpack leaves the message alone if the detail is of another type.
        _ = detail.Unpack(info) or detail.Unpack(bad)
    ours = info.domain == _DOMAIN
    details = Details(
        code=code,
        message=message,
        reason=info.reason if ours else None,
        metadata=dict(info.metadata) if ours else {},
        fields=tuple(FieldViolation(v.field, v.description) for v in bad.field_violations),
    )
    return _KNOWN.get(details.reason, Refused)(details)


def is_unheard(error: HeelerError) -> bool:
    """Whether the daemon cannot have begun to carry out the call, and may do so a moment later."""
    if isinstance(error, Refused):
        return error.code is grpc.StatusCode.UNAVAILABLE
    return isinstance(error, NotRunning)


def is_transient(error: HeelerError) -> bool:
    """Whether the same call may succeed a moment later: the daemon is away or restarting."""
    return is_unheard(error) or isinstance(error, Disconnected)


def is_final(error: HeelerError) -> bool:
    """Whether asking again, however late, would be answered the same."""
    return isinstance(error, Refused) and error.code in _FINAL


def _sent_details(status: grpc.aio.AioRpcError) -> Status | None:
    for key, value in status.trailing_metadata() or ():
        if key == _DETAILS_KEY and isinstance(value, bytes):
            return Status.FromString(value)
    return None


def _broke(status: grpc.aio.AioRpcError) -> bool:
    """Whether a status without details was made on this side, for a connection that is no more.

    The daemon sends details with each refusal; gRPC's own words tell a reset stream from the rest.
    """
    if status.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
        return True
    return "RST_STREAM" in (status.details() or "")
