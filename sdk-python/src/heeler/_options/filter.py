"""The selection of tasks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from heeler._options.fields import TaskRef, fill, id_of
from heeler.v1 import TaskFilter
from heeler.v1.enums import Placement, PlacementWord, TaskKindWord, TaskStateWord

FIELDS = {"tasks": "task_ids", "session": "session_id", "parent": "parent_id"}
"""The fields of TaskFilter that have another name here."""


@dataclass(frozen=True, kw_only=True)
class Filter:
    """A selection of tasks: those that match everything that is set.

    Enum values are members or their names in lower case: `kinds=["agent"]`.
    """

    tasks: Iterable[TaskRef] = ()
    session: str = ""
    kinds: Iterable[TaskKindWord] = ()
    states: Iterable[TaskStateWord] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    parent: TaskRef = ""
    """The task that spawned them."""
    stale: bool | None = None
    placement: PlacementWord = Placement.UNSPECIFIED
    directory: str | os.PathLike[str] = ""
    """The directory that they started in, or one above it."""
    queue: str = ""
    name: str = ""
    """The name, exactly."""
    id_prefix: str = ""
    """The beginning of the id, or of its part after the dash."""
    port: int = 0
    """A TCP port on which one of their processes listens. Not for a wait or a watch."""

    def to_message(self) -> TaskFilter:
        """Returns the message of the contract."""
        message = TaskFilter()
        fill(message, vars(self), FIELDS)
        return message


def within_session(session: str, filter: Filter | None) -> Filter:
    """Returns the filter narrowed to a session."""
    if filter is None:
        return Filter(session=session)
    if filter.session not in ("", session):
        raise ValueError(f"the filter is for the session {filter.session!r}, not {session!r}")
    return replace(filter, session=session)


def to_message(filter: Filter | None) -> TaskFilter | None:
    """Returns None for None, which stands for no filter."""
    return None if filter is None else filter.to_message()


def select(tasks: Iterable[TaskRef], filter: Filter | None) -> TaskFilter | None:
    """Returns the filter narrowed to the tasks. None: neither is given."""
    ids = list(map(id_of, tasks))
    if filter is None and not ids:
        return None
    message = TaskFilter() if filter is None else filter.to_message()
    message.task_ids.extend(ids)
    return message
