"""How a task's leader ended, as one of four things and never as one number."""

from __future__ import annotations

from dataclasses import dataclass

from heeler.v1 import BackgroundTask


@dataclass(frozen=True)
class Exited:
    """It exited by itself."""

    code: int


@dataclass(frozen=True)
class Signalled:
    """A signal ended it."""

    number: int
    name: str
    core_dumped: bool


@dataclass(frozen=True)
class NeverRan:
    """The system refused to start it."""

    operation: str
    message: str
    errno: int


@dataclass(frozen=True)
class Unknown:
    """It is gone, and nobody saw how."""

    detail: str


Outcome = Exited | Signalled | NeverRan | Unknown


def outcome(task: BackgroundTask) -> Outcome | None:
    """How the task's leader ended; None: it has not."""
    told = task.outcome
    match told.WhichOneof("result"):
        case "exit_code":
            return Exited(told.exit_code)
        case "signal":
            signal = told.signal
            return Signalled(signal.number, signal.name, signal.core_dumped)
        case "spawn_error":
            refused = told.spawn_error
            return NeverRan(refused.operation, refused.message, refused.errno)
        case "unknown":
            return Unknown(told.unknown.detail)
        case None:
            # An outcome of a kind that only a newer client knows is still one.
            return Unknown("") if task.HasField("outcome") else None
