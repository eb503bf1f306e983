"""The Python client of Heeler: it starts, watches, inspects and stops background tasks.

    async with heeler.connect_or_start() as client:
        task = await client.spawn("make test", session="demo")
        ended = await task.wait()
        print(heeler.outcome(ended))

Answers are the messages of the contract, in `heeler.v1`. Its enums are here, such as
`TaskState.RUNNING`, and an exception for each reason of a refusal, below `RefusedError`.
`heeler.sync` has the same calls for programs without an event loop.
"""

from heeler._calls.client import Client
from heeler._calls.outcome import (
    Delivered,
    Exited,
    NeverRan,
    Outcome,
    Signalled,
    Unknown,
    outcome,
)
from heeler._calls.session import Session, SessionCounts, session_counts
from heeler._calls.task import Task, TaskEvents
from heeler._connection.address import Address, Scheme, TcpAddress, UnixAddress
from heeler._connection.connect import Connecting, connect, connect_or_start
from heeler._errors.base import (
    AddressError,
    ClientClosedError,
    CredentialsError,
    DaemonConnectionError,
    DaemonNotRunningError,
    DaemonStartError,
    DaemonUnreachableError,
    DisconnectedError,
    HeelerError,
    InputBrokenError,
    NotInstalledError,
    TaskStillRunningError,
    TaskSurvivedError,
    WorkClosedError,
)
from heeler._errors.refused import FieldViolation, RefusalDetails, RefusedError
from heeler._foreground.attach import Attachment
from heeler._foreground.attach_cursor import AttachItem
from heeler._foreground.run import RunResult
from heeler._options.cancel import CancelOptions
from heeler._options.fields import TaskRef
from heeler._options.filter import Filter
from heeler._options.spawn import (
    Command,
    HostOptions,
    RunOptions,
    SessionHostOptions,
    SessionRunOptions,
    SessionSpawnOptions,
    SpawnOptions,
)
from heeler._options.time import Span, Time
from heeler._streams.follow import Follow
from heeler._streams.follow_cursor import (
    FollowItem,
    TaskBegun,
    TaskEnded,
    TaskGone,
    TaskOutput,
)
from heeler._streams.input import InputWriter
from heeler._streams.output import Chunk, Gap, Line, Lines, Output
from heeler._streams.watch import Watch
from heeler._streams.watch_cursor import WatchItem
from heeler._work.host import Body
from heeler._work.result import WorkResult
from heeler._work.work import Messages, Work
from heeler.v1 import (
    Attached,
    AttachEnded,
    BackgroundTask,
    Block,
    Bookmark,
    CancelResult,
    DetachResult,
    HeadAndTail,
    OutputCursor,
    OutputFilter,
    OutputPattern,
    OutputSearch,
    Queue,
    SessionActivity,
    SessionInfo,
    SpawnNotice,
    TaskEvent,
    TaskMessage,
    WorkCancel,
    enums,
    errors,
)
from heeler.v1.enums import *
from heeler.v1.errors import *

__all__ = [
    "Address",
    "AddressError",
    "AttachEnded",
    "AttachItem",
    "Attached",
    "Attachment",
    "BackgroundTask",
    "Block",
    "Body",
    "Bookmark",
    "CancelOptions",
    "CancelResult",
    "Chunk",
    "Client",
    "ClientClosedError",
    "Command",
    "Connecting",
    "CredentialsError",
    "DaemonConnectionError",
    "DaemonNotRunningError",
    "DaemonStartError",
    "DaemonUnreachableError",
    "Delivered",
    "DetachResult",
    "DisconnectedError",
    "Exited",
    "FieldViolation",
    "Filter",
    "Follow",
    "FollowItem",
    "Gap",
    "HeadAndTail",
    "HeelerError",
    "HostOptions",
    "InputBrokenError",
    "InputWriter",
    "Line",
    "Lines",
    "Messages",
    "NeverRan",
    "NotInstalledError",
    "Outcome",
    "Output",
    "OutputCursor",
    "OutputFilter",
    "OutputPattern",
    "OutputSearch",
    "Queue",
    "RefusalDetails",
    "RefusedError",
    "RunOptions",
    "RunResult",
    "Scheme",
    "Session",
    "SessionActivity",
    "SessionCounts",
    "SessionHostOptions",
    "SessionInfo",
    "SessionRunOptions",
    "SessionSpawnOptions",
    "Signalled",
    "Span",
    "SpawnNotice",
    "SpawnOptions",
    "Task",
    "TaskBegun",
    "TaskEnded",
    "TaskEvent",
    "TaskEvents",
    "TaskGone",
    "TaskMessage",
    "TaskOutput",
    "TaskRef",
    "TaskStillRunningError",
    "TaskSurvivedError",
    "TcpAddress",
    "Time",
    "UnixAddress",
    "Unknown",
    "Watch",
    "WatchItem",
    "Work",
    "WorkCancel",
    "WorkClosedError",
    "WorkResult",
    "connect",
    "connect_or_start",
    "outcome",
    "session_counts",
]
__all__ += enums.__all__
__all__ += errors.__all__
