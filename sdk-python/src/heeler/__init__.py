"""The Python client of Heeler: it starts, watches, inspects and stops background tasks.

    async with heeler.connect() as client:
        task = await client.spawn("make test", session="demo")
        ended = await task.wait()
        print(heeler.outcome(ended))

Calls give the contract's own messages, which are in `heeler.v1`; enums are here without their
prefixes, e.g. `TaskState.RUNNING`. `heeler.sync` has the same calls for programs without an event
loop. Every refusal of the daemon is an exception of its own, below `Refused`.
"""

from heeler._address import Address, Scheme, TcpAddress, UnixAddress
from heeler._client import Client
from heeler._connecting import Connecting, connect
from heeler._cursor import WatchItem
from heeler._errors import (
    AddressError,
    ClientClosed,
    CredentialsError,
    Details,
    Disconnected,
    FieldViolation,
    ForeignState,
    ForeignUser,
    HeelerError,
    InvalidField,
    NotRunning,
    NotServing,
    PageTokenMismatch,
    ParentNotLive,
    ProgramUnusable,
    Refused,
    RequestIdReused,
    RequestTooLarge,
    RevisionOutOfRange,
    SpawnFailed,
    StillRunning,
    StorageFailed,
    StorageFull,
    StorageReadOnly,
    TaskLimitReached,
    TaskNotFinished,
    TaskNotFound,
    TokenRefused,
    TooManyCalls,
    Unreachable,
    Unreached,
    WorkingDirectoryUnusable,
)
from heeler._filter import Filter, TaskRef
from heeler._outcome import Exited, NeverRan, Outcome, Signalled, Unknown, outcome
from heeler._output import Chunk, Line, Lines, Output
from heeler._task import Task, TaskEvents
from heeler._time import Span
from heeler._watch import Watch
from heeler.v1 import BackgroundTask, Bookmark, SessionActivity, TaskEvent
from heeler.v1.enums import (
    CancelOutcome,
    Containment,
    EndReason,
    EnvDefaults,
    OutputStream,
    OutputView,
    ProofMethod,
    TaskEventType,
    TaskKind,
    TaskState,
    WaitCondition,
)

__all__ = [
    "Address",
    "AddressError",
    "BackgroundTask",
    "Bookmark",
    "CancelOutcome",
    "Chunk",
    "Client",
    "ClientClosed",
    "Connecting",
    "Containment",
    "CredentialsError",
    "Details",
    "Disconnected",
    "EndReason",
    "EnvDefaults",
    "Exited",
    "FieldViolation",
    "Filter",
    "ForeignState",
    "ForeignUser",
    "HeelerError",
    "InvalidField",
    "Line",
    "Lines",
    "NeverRan",
    "NotRunning",
    "NotServing",
    "Outcome",
    "Output",
    "OutputStream",
    "OutputView",
    "PageTokenMismatch",
    "ParentNotLive",
    "ProgramUnusable",
    "ProofMethod",
    "Refused",
    "RequestIdReused",
    "RequestTooLarge",
    "RevisionOutOfRange",
    "Scheme",
    "SessionActivity",
    "Signalled",
    "Span",
    "SpawnFailed",
    "StillRunning",
    "StorageFailed",
    "StorageFull",
    "StorageReadOnly",
    "Task",
    "TaskEvent",
    "TaskEventType",
    "TaskEvents",
    "TaskKind",
    "TaskLimitReached",
    "TaskNotFinished",
    "TaskNotFound",
    "TaskRef",
    "TaskState",
    "TcpAddress",
    "TokenRefused",
    "TooManyCalls",
    "UnixAddress",
    "Unknown",
    "Unreachable",
    "Unreached",
    "WaitCondition",
    "Watch",
    "WatchItem",
    "WorkingDirectoryUnusable",
    "connect",
    "outcome",
]
