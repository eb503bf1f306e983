"""The result of a worker."""

from __future__ import annotations

from dataclasses import dataclass

from heeler.v1 import WorkerResult
from heeler.v1.enums import WorkerStatus

_MAX_BYTES = 64 * 1024
"""The longest text, and the most data."""


@dataclass(frozen=True)
class WorkResult:
    """The result of a worker. A function that does the work may also return a text, or None."""

    status: WorkerStatus
    text: str = ""
    """The result for people and models, up to 64 KiB."""
    data: bytes = b""
    """The result for programs, up to 64 KiB."""

    def __post_init__(self) -> None:
        """Raises ValueError for a result that the daemon would refuse."""
        for name, size in (("text", len(self.text.encode())), ("data", len(self.data))):
            if size > _MAX_BYTES:
                raise ValueError(
                    f"the {name} of a result has {size} bytes: at most {_MAX_BYTES} are allowed"
                )

    @staticmethod
    def ok(text: str = "", data: bytes = b"") -> WorkResult:
        """Returns the result of work that is done."""
        return WorkResult(WorkerStatus.OK, text, data)

    @staticmethod
    def failed(text: str = "", data: bytes = b"") -> WorkResult:
        """Returns the result of work that failed."""
        return WorkResult(WorkerStatus.FAILED, text, data)

    @staticmethod
    def cancelled(text: str = "", data: bytes = b"") -> WorkResult:
        """Returns the result of work that was stopped: what there was by then."""
        return WorkResult(WorkerStatus.CANCELLED, text, data)

    def to_message(self) -> WorkerResult:
        """Returns the message of the contract."""
        return WorkerResult(status=self.status, text=self.text, data=self.data)


Returned = WorkResult | str | None
"""A result as a function returns it: a text, or None, is that of work that is done."""


def to_result(returned: Returned) -> WorkResult:
    """Returns the result for a returned value."""
    match returned:
        case WorkResult():
            return returned
        case str(text):
            return WorkResult.ok(text)
        case None:
            return WorkResult.ok()
    raise TypeError(f"a result is a WorkResult, a text or None, not {type(returned).__name__}")


def of_failure(error: BaseException) -> WorkResult:
    """Returns the result of work that an exception has ended: its message, which is cut."""
    return WorkResult.failed(_message(error, type(error).__name__))


def of_cancellation(error: BaseException, otherwise: str = "") -> WorkResult:
    """Returns the result of work whose caller was cancelled or interrupted."""
    return WorkResult.cancelled(_message(error, otherwise))


def _message(error: BaseException, otherwise: str) -> str:
    text = str(error).strip() or otherwise
    return text.encode(errors="replace")[:_MAX_BYTES].decode(errors="ignore")
