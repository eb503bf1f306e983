"""The options of a task, and the request that they make.

A new option takes a line in SessionRunOptions, or in TaskOptions if hosted tasks have it. One whose
field has another name or is in a group takes a line in FIELDS as well.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from signal import Signals
from typing import TYPE_CHECKING, Literal, TypedDict

from heeler._options.check import check_options
from heeler._options.fields import TaskRef, fill
from heeler._options.time import Span, to_optional_duration
from heeler.v1 import (
    ArgvCommand,
    OutputPattern,
    ShellCommand,
    SpawnRequest,
    TaskSpec,
    WorkRegister,
)
from heeler.v1.enums import (
    DisconnectActionWord,
    EnvironmentDefaultsWord,
    ExclusiveModeWord,
    ForegroundTimeoutActionWord,
    OrphanPolicyWord,
    OutputLimitActionWord,
    ReadyTimeoutActionWord,
    StaleActionWord,
    TaskKind,
    TaskKindWord,
    TaskRightsWord,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

Command = str | Sequence[str | os.PathLike[str]]
"""A string is a script for a shell; a sequence is a program and its arguments, run without one."""


class TaskOptions(TypedDict, total=False):
    """The options of every task. One that is absent or None has the default of the daemon."""

    name: str
    """A name for people."""
    cwd: str | os.PathLike[str]
    """The absolute path of the directory to start in."""
    labels: Mapping[str, str] | None
    """Data for the filters of the client."""
    parent: TaskRef
    """The live task that spawns this one."""
    timeout: Span | None
    """Maximum time in the background. No limit by default."""
    idle_timeout: Span | None
    """Maximum time without output or activity of a worker. No limit by default."""
    grace: Span | None
    """Time between the stop signal and the kill. 5 s by default."""
    soft_grace: Span | None
    """Time before the stop signal for a worker that listens. 10 s by default."""
    request_id: str | None
    """An id that makes the call safe to repeat: the same id starts nothing new.

    Each call has a fresh id by default. An id of your own also works across crashes of the caller.
    An empty one sends none.
    """
    stale_after: Span | None
    """Time without output or activity of a worker until the task is stale. Never by default."""
    on_stale: StaleActionWord
    """Action when the task becomes stale, besides the STALE event. NOTIFY by default."""
    exclusive_key: str
    """A key that only one live task has at a time."""
    exclusive_mode: ExclusiveModeWord
    """Behaviour when another task holds the key. REJECT by default."""
    queue: str
    """The queue in which the task waits for a slot."""


class SessionRunOptions(TaskOptions, total=False):
    """The options of `Session.run`."""

    kind: TaskKindWord
    """`"shell"`, the default, or `"agent"`. Enum values are words or members of the enum."""
    shell_program: str
    """The absolute path of the shell for a script."""
    env: Mapping[str, str | None] | None
    """Changes to the environment of the daemon. None as a value removes the variable."""
    env_defaults: EnvironmentDefaultsWord
    """NON_INTERACTIVE by default: PAGER=cat, NO_COLOR=1 and the like."""
    stop_signal: str | Signals
    """The stop signal. SIGTERM by default."""
    foreground_timeout: Span | None
    """Maximum time in the foreground. 60 s by default."""
    on_foreground_timeout: ForegroundTimeoutActionWord
    """Action when that time is over. DETACH by default."""
    on_disconnect: DisconnectActionWord
    """Action when the last attached client disconnects. CANCEL by default."""
    reattach_window: Span | None
    """Time for a client to attach, first or again after a disconnect. 10 s by default."""
    orphan_policy: OrphanPolicyWord
    """Treatment of processes that outlive the leader. TRACK by default."""
    rights: TaskRightsWord
    """The calls that processes of the task may make. CHILDREN by default."""
    max_output: int
    """The most disk space for the output, in bytes. 64 MiB by default."""
    output_head: int
    """Bytes of output that are kept from the beginning when the rest rotates. 1 MiB by default."""
    on_output_limit: OutputLimitActionWord
    """Action when the output reaches its limit. ROTATE by default."""
    patterns: Iterable[OutputPattern] | None
    """Patterns to look for in the output, which MATCHED events tell of. None by default."""
    input: bool
    """Gives the task a stdin that `Task.input` writes to. It stays open until it is closed."""
    notify_input_after: Span | None
    """Gives the task a stdin, and looks for NEEDS_INPUT after this time without output.

    By default only when the task becomes stale.
    """
    terminal: bool
    """Gives the task a terminal, as the options for one do. Its output is one stream, STDOUT."""
    terminal_columns: int
    """The width of the terminal. 80 by default."""
    terminal_rows: int
    """The height of the terminal. 24 by default."""
    terminal_type: str
    """The TERM of the task. xterm-256color by default."""
    ready_port: int | None
    """Ready when a process of the task listens on this TCP port; 0 for any port."""
    ready_url: str | None
    """Ready when a GET of this `http:` URL is answered with a status from 200 to 399."""
    ready_command: Sequence[str | os.PathLike[str]] | None
    """Ready when this program, with its arguments, exits with 0."""
    ready_pattern: str | None
    """Ready when a line of the output matches this regular expression."""
    ready_interval: Span | None
    """Time between two looks. 1 s by default; the first ones follow faster. Not for a pattern."""
    ready_timeout: Span | None
    """Time from the start within which the task must be ready. No limit by default."""
    on_ready_timeout: ReadyTimeoutActionWord
    """Action when that time is over, besides the NOT_READY event. NOTIFY by default."""
    restart_on_failure: bool
    """Starts the task again, under the same id, when its leader fails.

    `restart_delay`, `max_restart_delay`, `max_restarts` and `restart_reset_after` also ask for it.
    """
    restart_delay: Span | None
    """Time from a failure to the next attempt. 1 s by default; it doubles with each failure."""
    max_restart_delay: Span | None
    """The longest such time. 30 s by default."""
    max_restarts: int | None
    """The most restarts in a row; 0 for no limit. 5 by default."""
    restart_reset_after: Span | None
    """The run after which a failure is the first one in a row again. 60 s by default."""


class RunOptions(SessionRunOptions, total=False):
    """The options of `run`."""

    session: str
    """The host conversation that the task belongs to."""


class SessionSpawnOptions(SessionRunOptions, total=False):
    """The options of `Session.spawn`."""

    foreground: bool
    """Starts the task in the foreground, for a client that attaches to it.

    `foreground_timeout`, `on_foreground_timeout`, `on_disconnect` and `reattach_window` also start
    the task in the foreground.
    """


class SpawnOptions(SessionSpawnOptions, RunOptions, total=False):
    """The options of `spawn`."""


class SessionHostOptions(TaskOptions, total=False):
    """The options of `Session.host`."""

    lease: Span | None
    """Time without a sign of this program after which the task is LOST: 1 s to 1 h, else 30 s."""


class HostOptions(SessionHostOptions, total=False):
    """The options of `host` and `register`."""

    session: str
    """The host conversation that the task belongs to."""


FIELDS = {
    "session": "session_id",
    "parent": "parent_id",
    "cwd": "working_directory",
    "env_defaults": "environment.defaults",
    "grace": "stop.grace",
    "soft_grace": "stop.soft_grace",
    "stop_signal": "stop.signal",
    "foreground_timeout": "foreground.timeout",
    "on_foreground_timeout": "foreground.on_timeout",
    "on_disconnect": "foreground.on_disconnect",
    "reattach_window": "foreground.reattach_window",
    "stale_after": "silence.stale_after",
    "on_stale": "silence.on_stale",
    "exclusive_key": "exclusive.key",
    "exclusive_mode": "exclusive.mode",
    "max_output": "output.max_bytes",
    "output_head": "output.head_bytes",
    "on_output_limit": "output.on_limit",
    "patterns": "output.patterns",
    "notify_input_after": "input.notify_after",
    "terminal_columns": "terminal.columns",
    "terminal_rows": "terminal.rows",
    "terminal_type": "terminal.term",
    "ready_port": "ready.port",
    "ready_url": "ready.http_url",
    "ready_command": "ready.command.args",
    "ready_pattern": "ready.pattern",
    "ready_interval": "ready.interval",
    "ready_timeout": "ready.timeout",
    "on_ready_timeout": "ready.on_timeout",
    "restart_delay": "restart.delay",
    "max_restart_delay": "restart.max_delay",
    "max_restarts": "restart.max_restarts",
    "restart_reset_after": "restart.reset_after",
}
"""The fields of TaskSpec that have another name here, or are in a group."""

_Group = Literal["foreground", "input", "restart", "terminal"]

_FLAGS: Mapping[str, _Group] = {
    "foreground": "foreground",
    "input": "input",
    "restart_on_failure": "restart",
    "terminal": "terminal",
}
"""The options that make a group present, with the group."""


def spawn_request(command: Command, **options: Unpack[SpawnOptions]) -> SpawnRequest:
    """Returns the request for a command and its options."""
    check_options("spawn", options, SpawnOptions)
    rest = dict(options)
    request = SpawnRequest(request_id=_request_id(options.get("request_id")))
    spec = request.spec
    program = options.get("shell_program") or ""
    if isinstance(command, str):
        spec.shell.CopyFrom(ShellCommand(script=command, program=program))
    elif program:
        raise ValueError("shell_program needs a script: the command is a program with arguments")
    else:
        spec.argv.CopyFrom(ArgvCommand(args=[os.fspath(word) for word in command]))
    for option, group in _FLAGS.items():
        if options.get(option):
            getattr(spec, group).SetInParent()
    for variable, value in (options.get("env") or {}).items():
        if value is None:
            spec.environment.remove.append(variable)
        else:
            spec.environment.variables[variable] = value
    for done in ("request_id", "shell_program", "env", *_FLAGS):
        rest.pop(done, None)
    fill(spec, rest, FIELDS)
    for option, group in _FLAGS.items():
        if options.get(option) is False and spec.HasField(group):
            raise ValueError(f"{option} is False, but an option for it is given")
    return request


def register_request(**options: Unpack[HostOptions]) -> WorkRegister:
    """Returns the request for a hosted task."""
    check_options("host", options, HostOptions)
    rest = dict(options)
    request = WorkRegister(
        request_id=_request_id(options.get("request_id")),
        spec=TaskSpec(kind=TaskKind.HOSTED),
        lease=to_optional_duration(options.get("lease")),
    )
    for done in ("request_id", "lease"):
        rest.pop(done, None)
    fill(request.spec, rest, FIELDS)
    return request


def _request_id(given: str | None) -> str:
    return str(uuid.uuid4()) if given is None else given
