"""Fills a message of the contract from flat options, as the descriptor of each field says.

An option without a conversion here fits its field as it is; protobuf raises TypeError or
ValueError for a value that does not fit.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from signal import Signals
from typing import Any, Protocol

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from heeler._options.time import to_duration
from heeler._options.words import to_number
from heeler.v1 import enums


class HasId(Protocol):
    """A task handle, or a task in an answer."""

    @property
    def id(self) -> str: ...


TaskRef = str | HasId
"""A task: its id, its handle, or the task in an answer."""


def id_of(task: TaskRef) -> str:
    """Returns the id of the task."""
    return task if isinstance(task, str) else task.id


def signal_name(signal: str | Signals) -> str:
    """Returns the name of the signal, as the contract has it."""
    return signal.name if isinstance(signal, Signals) else signal


def fill(message: Message, options: Mapping[str, Any], paths: Mapping[str, str]) -> None:
    """Sets a field for each option that is not None.

    `paths` has the path of each field whose name differs from that of its option, such as
    `stop.grace`. Setting a field of a group makes the group present.
    """
    for option, value in options.items():
        if value is None:
            continue
        *groups, name = paths.get(option, option).split(".")
        target = message
        for group in groups:
            target = getattr(target, group)
        _set(option, target, target.DESCRIPTOR.fields_by_name[name], value)


def _set(option: str, message: Message, field: Any, value: Any) -> None:
    if field.is_repeated:
        current = getattr(message, field.name)
        if isinstance(value, Mapping):
            current.update(value)
        else:
            current.extend(_scalar(option, field, item) for item in value)
    elif field.message_type is Duration.DESCRIPTOR:
        getattr(message, field.name).CopyFrom(to_duration(value))
    else:
        setattr(message, field.name, _scalar(option, field, value))


def _scalar(option: str, field: Any, value: Any) -> Any:
    if field.enum_type is not None:
        return to_number(option, getattr(enums, field.enum_type.name), value)
    if isinstance(value, Signals):
        return signal_name(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return getattr(value, "id", value)
