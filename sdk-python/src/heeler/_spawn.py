"""What to start, and how: the options of a spawn, and the request that they make."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from signal import Signals
from typing import TypedDict

from heeler import _time
from heeler._filter import TaskRef, id_of
from heeler._time import Span
from heeler.v1 import ArgvCommand, ShellCommand, SpawnRequest, StopPolicy
from heeler.v1.enums import (
    EnvDefaults,
    ExclusiveMode,
    ForegroundTimeoutAction,
    HolderGoneAction,
    LingeringPolicy,
    Placement,
    StaleAction,
    TaskKind,
)

Command = str | Sequence[str | os.PathLike[str]]
"""A script for a shell if it is a string, else a program and its arguments, run as they are."""


class RunOptions(TypedDict, total=False):
    """How a command is run. What is not given, or None, is as the daemon has it by default."""

    session: str
    """The conversation that it belongs to."""
    name: str
    """A name for people."""
    kind: TaskKind.ValueType
    """SHELL, unless it is a subagent."""
    shell_program: str
    """Which shell runs the script."""
    cwd: str | os.PathLike[str]
    """The absolute path to start in."""
    env: Mapping[str, str | None] | None
    """Laid over the daemon's environment; a variable that is None is taken out of it."""
    env_defaults: EnvDefaults.ValueType
    """Whether programs are told that nobody is looking: no pager, no colour, no prompts."""
    labels: Mapping[str, str] | None
    """For the caller's own filters."""
    parent: TaskRef
    """The task that spawns this one. It must be live."""
    timeout: Span | None
    """How long it may run in the background. By default for ever."""
    grace: Span | None
    """How long its tree may take to obey the stop signal before it is killed. By default 5 s."""
    stop_signal: str | Signals
    """What it is asked to stop with. By default SIGTERM."""
    request_id: str | None
    """By this the daemon knows a request again, so that nothing is started twice.

    Each call has a fresh one; one of the caller's own also holds across crashes of the caller;
    with an empty one there is none.
    """
    foreground_timeout: Span | None
    """How long it may stay in the foreground. By default 60 s. Only there, as the next three."""
    on_foreground_timeout: ForegroundTimeoutAction.ValueType
    """What happens then. By default DETACH."""
    on_holder_gone: HolderGoneAction.ValueType
    """What happens when nobody holds it any more and it was not detached. By default CANCEL."""
    holder_window: Span | None
    """How long nobody may hold it before that happens: time to attach, first or again.

    By default 10 s.
    """
    lingering: LingeringPolicy.ValueType
    """What happens when its leader exits and others of its tree do not. By default TRACK."""
    idle_timeout: Span | None
    """How long it may write nothing before it is stopped. By default for ever."""
    stale_after: Span | None
    """How long it may write nothing before a STALE event says so. By default for ever."""
    stale_action: StaleAction.ValueType
    """What else happens then. By default NOTIFY, which is nothing else."""
    exclusive_key: str
    """Of the tasks with the same key, one is live at a time."""
    exclusive_mode: ExclusiveMode.ValueType
    """What happens when another task has the key. By default REJECT."""
    queue: str
    """The queue in which it waits for its turn."""


class SpawnOptions(RunOptions, total=False):
    """How a task is started: as a command that is run, and where."""

    placement: Placement.ValueType
    """BACKGROUND, unless a caller is to be held by it, with `attach`."""


def spawn_request(
    command: Command,
    *,
    session: str = "",
    name: str = "",
    kind: TaskKind.ValueType = TaskKind.UNSPECIFIED,
    shell_program: str = "",
    cwd: str | os.PathLike[str] = "",
    env: Mapping[str, str | None] | None = None,
    env_defaults: EnvDefaults.ValueType = EnvDefaults.UNSPECIFIED,
    labels: Mapping[str, str] | None = None,
    parent: TaskRef = "",
    timeout: Span | None = None,
    grace: Span | None = None,
    stop_signal: str | Signals = "",
    request_id: str | None = None,
    placement: Placement.ValueType = Placement.UNSPECIFIED,
    foreground_timeout: Span | None = None,
    on_foreground_timeout: ForegroundTimeoutAction.ValueType = ForegroundTimeoutAction.UNSPECIFIED,
    on_holder_gone: HolderGoneAction.ValueType = HolderGoneAction.UNSPECIFIED,
    holder_window: Span | None = None,
    lingering: LingeringPolicy.ValueType = LingeringPolicy.UNSPECIFIED,
    idle_timeout: Span | None = None,
    stale_after: Span | None = None,
    stale_action: StaleAction.ValueType = StaleAction.UNSPECIFIED,
    exclusive_key: str = "",
    exclusive_mode: ExclusiveMode.ValueType = ExclusiveMode.UNSPECIFIED,
    queue: str = "",
) -> SpawnRequest:
    """The contract's form of a command and its options, which are those of SpawnOptions."""
    request = SpawnRequest(
        request_id=str(uuid.uuid4()) if request_id is None else request_id,
        session_id=session,
        name=name,
        kind=kind,
        working_directory=os.fspath(cwd),
        env={key: value for key, value in (env or {}).items() if value is not None},
        env_remove=[key for key, value in (env or {}).items() if value is None],
        env_defaults=env_defaults,
        labels=labels,
        parent_id=id_of(parent),
        timeout=_time.to_optional(timeout),
        placement=placement,
        foreground_timeout=_time.to_optional(foreground_timeout),
        on_foreground_timeout=on_foreground_timeout,
        on_holder_gone=on_holder_gone,
        holder_window=_time.to_optional(holder_window),
        lingering=lingering,
        idle_timeout=_time.to_optional(idle_timeout),
        stale_after=_time.to_optional(stale_after),
        stale_action=stale_action,
        exclusive_key=exclusive_key,
        exclusive_mode=exclusive_mode,
        queue=queue,
    )
    if isinstance(command, str):
        request.shell.CopyFrom(ShellCommand(script=command, program=shell_program))
    elif shell_program:
        raise ValueError("shell_program goes with a script, and command is a program")
    else:
        request.argv.CopyFrom(ArgvCommand(args=[os.fspath(word) for word in command]))
    if grace is not None or stop_signal:
        request.stop_policy.CopyFrom(
            StopPolicy(grace=_time.to_optional(grace), signal=signal_name(stop_signal))
        )
    return request


def signal_name(signal: str | Signals) -> str:
    """A signal as the contract names it."""
    return signal.name if isinstance(signal, Signals) else signal
