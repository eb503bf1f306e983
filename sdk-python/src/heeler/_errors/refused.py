"""Refusals of the daemon. The class for each reason is generated, in `heeler.v1.errors`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import grpc

from heeler._errors.base import HeelerError
from heeler._options.names import option_of


@dataclass(frozen=True)
class FieldViolation:
    """A field of the request with a bad value."""

    field: str
    """Its path in the contract, such as `spec.stop.grace`."""
    description: str
    """The problem, as the daemon describes it."""

    @property
    def option(self) -> str:
        """The argument or option of this package that sets it, such as `grace`."""
        return option_of(self.field)

    def explain(self, text: str) -> str:
        """Returns a text of the daemon with the name of the option beside that of the field."""
        if self.option == self.field or not text.startswith(self.field):
            return text
        return f"{self.option} ({self.field}){text.removeprefix(self.field)}"


@dataclass(frozen=True)
class RefusalDetails:
    """The content of a refusal."""

    code: grpc.StatusCode
    message: str = ""
    reason: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    fields: Sequence[FieldViolation] = ()

    def __str__(self) -> str:
        if not self.fields:
            return self.message or self.code.name
        first = self.fields[0]
        return first.explain(self.message or f"{first.field}: {first.description}")


class RefusedError(HeelerError):
    """The daemon refused the call and changed nothing.

    Each reason of the contract has a subclass. A reason that this version does not know, or a
    status that does not come from Heeler, is a RefusedError itself.
    """

    REASON: ClassVar[str | None] = None

    def __init__(self, details: RefusalDetails) -> None:
        super().__init__(str(details))
        self.details = details

    @property
    def code(self) -> grpc.StatusCode:
        """The gRPC status code."""
        return self.details.code

    @property
    def reason(self) -> str | None:
        """The reason, such as `TASK_NOT_FOUND`. None if the status does not come from Heeler."""
        return self.details.reason

    @property
    def metadata(self) -> Mapping[str, str]:
        """The values that belong to the reason."""
        return self.details.metadata

    @property
    def fields(self) -> Sequence[FieldViolation]:
        """The fields of the request that have bad values."""
        return self.details.fields
