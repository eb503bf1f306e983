"""What can go wrong with a call, typed from the details that the daemon sends with each refusal.

All that this package raises of its own accord is a HeelerError, save TypeError and ValueError for
arguments that no request could carry, and TimeoutError for a deadline that the caller set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import grpc

if TYPE_CHECKING:
    from heeler._address import Address
    from heeler.v1 import BackgroundTask


class HeelerError(Exception):
    """Why a call did not succeed."""


class AddressError(HeelerError, ValueError):
    """The address cannot be used."""


class CredentialsError(HeelerError, ValueError):
    """The token or the authority for a daemon over TCP cannot be used."""


class ClientClosed(HeelerError):
    """The client was closed, before the call or during it."""


class StillRunning(HeelerError, TimeoutError):
    """The time of a wait is over, and the task is not."""

    def __init__(self, task: BackgroundTask) -> None:
        super().__init__(f"{task.id} is still running")
        self.task = task


class Unreached(HeelerError, ConnectionError):
    """The daemon gave no answer."""

    def __init__(self, address: Address, text: str) -> None:
        super().__init__(text)
        self.address = address


class NotRunning(Unreached):
    """Nobody listens there: the text says how to start a daemon."""

    def __init__(self, address: Address) -> None:
        start = address.start_command()
        super().__init__(address, f"no daemon answers at {address}: start one with `{start}`")


class Unreachable(Unreached):
    """Somebody may listen there, but we cannot reach them."""

    def __init__(self, address: Address, cause: OSError) -> None:
        super().__init__(address, f"cannot connect to {address}: {cause.strerror or cause}")


class Disconnected(Unreached):
    """The connection broke: whether the daemon heard the call is not known."""

    def __init__(self, address: Address) -> None:
        super().__init__(address, f"the connection to {address} broke")


@dataclass(frozen=True)
class FieldViolation:
    """A field of the request that cannot be used: its path, and what is wrong with it."""

    field: str
    description: str


@dataclass(frozen=True)
class Details:
    """What a refusal says, in the daemon's words and in machine-readable form."""

    code: grpc.StatusCode
    message: str = ""
    reason: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    fields: Sequence[FieldViolation] = ()

    def __str__(self) -> str:
        if self.message:
            return self.message
        if self.fields:
            return f"{self.fields[0].field}: {self.fields[0].description}"
        return self.code.name


class Refused(HeelerError):
    """The daemon said no, and nothing was changed.

    Each reason of the contract has a class of its own below this one; a reason of a newer daemon,
    and a status that did not come from Heeler itself, is plainly Refused.
    """

    REASON: ClassVar[str | None] = None

    def __init__(self, details: Details) -> None:
        super().__init__(str(details))
        self.details = details

    @property
    def code(self) -> grpc.StatusCode:
        """The gRPC status code."""
        return self.details.code

    @property
    def reason(self) -> str | None:
        """Why, e.g. `TASK_NOT_FOUND`. None if the status did not come from Heeler itself."""
        return self.details.reason

    @property
    def metadata(self) -> Mapping[str, str]:
        """The values that the reason speaks of."""
        return self.details.metadata

    @property
    def fields(self) -> Sequence[FieldViolation]:
        """Which fields of the request cannot be used."""
        return self.details.fields


class InvalidField(Refused):
    """A field cannot be used; `fields` names it."""

    REASON = "INVALID_FIELD"


class PageTokenMismatch(Refused):
    """A page token goes with another filter, or is none."""

    REASON = "PAGE_TOKEN_MISMATCH"


class TaskNotFound(Refused):
    """No such task. Metadata: task_id."""

    REASON = "TASK_NOT_FOUND"


class ParentNotLive(Refused):
    """The parent is unknown, over or being stopped. Metadata: parent_id."""

    REASON = "PARENT_NOT_LIVE"


class WorkingDirectoryUnusable(Refused):
    """No directory that could be entered. Metadata: path, os_error."""

    REASON = "WORKING_DIRECTORY_UNUSABLE"


class ProgramUnusable(Refused):
    """The program is missing or not executable. Metadata: program, os_error."""

    REASON = "PROGRAM_UNUSABLE"


class SpawnFailed(Refused):
    """The system refused the start; a FAILED task has the details.

    Metadata: task_id, operation, os_error.
    """

    REASON = "SPAWN_FAILED"


class RequestIdReused(Refused):
    """The request_id belongs to a different request. Metadata: request_id, task_id."""

    REASON = "REQUEST_ID_REUSED"


class TaskLimitReached(Refused):
    """No more live tasks. Metadata: running, max."""

    REASON = "TASK_LIMIT_REACHED"


class TaskNotFinished(Refused):
    """Only finished tasks can be removed. Metadata: task_id, state."""

    REASON = "TASK_NOT_FINISHED"


class RevisionOutOfRange(Refused):
    """The daemon has no such revision. Metadata: oldest, newest."""

    REASON = "REVISION_OUT_OF_RANGE"


class ForeignState(Refused):
    """The daemon has another state directory. Metadata: state_id."""

    REASON = "FOREIGN_STATE"


class ForeignUser(Refused):
    """The daemon is another user's. Metadata: uid."""

    REASON = "FOREIGN_USER"


class TooManyCalls(Refused):
    """Too many calls at once. Metadata: max."""

    REASON = "TOO_MANY_CALLS"


class NotServing(Refused):
    """The daemon is taking its tasks back, or is shutting down: try again."""

    REASON = "NOT_SERVING"


class StorageFailed(Refused):
    """The state directory could not be read or written. Metadata: operation, revision."""

    REASON = "STORAGE_FAILED"


class StorageFull(Refused):
    """The disk of the state directory is full. Metadata: operation, task_id."""

    REASON = "STORAGE_FULL"


class StorageReadOnly(Refused):
    """The disk of the state directory takes no writes. Metadata: operation, task_id."""

    REASON = "STORAGE_READ_ONLY"


class TokenRefused(Refused):
    """A call over TCP came without the daemon's token, or with another."""

    REASON = "TOKEN_REFUSED"


class RequestTooLarge(Refused):
    """The request is larger than the daemon takes. Metadata: max."""

    REASON = "REQUEST_TOO_LARGE"


class ExclusiveKeyHeld(Refused):
    """Another task has the exclusive key, or waits for it. Metadata: exclusive_key, task_id."""

    REASON = "EXCLUSIVE_KEY_HELD"


class SessionLimitReached(Refused):
    """No more live tasks in this session. Metadata: session_id, running, max."""

    REASON = "SESSION_LIMIT_REACHED"


class LabelLimitReached(Refused):
    """No more live tasks with this label. Metadata: label, value, running, max."""

    REASON = "LABEL_LIMIT_REACHED"


class QueueFull(Refused):
    """No more tasks may wait. Metadata: waiting, max."""

    REASON = "QUEUE_FULL"
