"""The end of a task: one of five types, never folded into one number."""

from __future__ import annotations

from dataclasses import dataclass

from heeler.v1 import BackgroundTask
from heeler.v1.enums import SpawnStage, WorkerStatus


@dataclass(frozen=True)
class Exited:
    """The leader exited with this code."""

    code: int


@dataclass(frozen=True)
class Signalled:
    """A signal ended the leader."""

    number: int
    name: str
    core_dumped: bool


@dataclass(frozen=True)
class NeverRan:
    """The leader could not be started."""

    stage: SpawnStage
    """The step that failed."""
    path: str
    """The program or the directory of that step. Empty for other steps."""
    message: str
    errno: int


@dataclass(frozen=True)
class Unknown:
    """The leader ended and there is no record of how, or a worker delivered no result."""

    detail: str


@dataclass(frozen=True)
class Delivered:
    """The worker of a hosted task delivered a result of this status."""

    status: WorkerStatus


Outcome = Exited | Signalled | NeverRan | Unknown | Delivered


def outcome(task: BackgroundTask) -> Outcome | None:
    """Returns the end of the task's leader or of its hosted work, or None if it has not ended."""
    found = task.outcome
    match found.WhichOneof("result"):
        case "exit_code":
            return Exited(found.exit_code)
        case "signal":
            signal = found.signal
            return Signalled(signal.number, signal.name, signal.core_dumped)
        case "spawn_error":
            error = found.spawn_error
            return NeverRan(SpawnStage(error.stage), error.path, error.message, error.errno)
        case "unknown":
            return Unknown(found.unknown.detail)
        case "worker":
            return Delivered(WorkerStatus(found.worker))
        case None:
            # A newer daemon may send an outcome of a kind that this version does not know.
            return Unknown("") if task.HasField("outcome") else None
