"""Which tasks are meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from heeler.v1 import TaskFilter
from heeler.v1.enums import TaskKind, TaskState


class HasId(Protocol):
    """A handle of a task, or the task itself as an answer has it."""

    @property
    def id(self) -> str: ...


TaskRef = str | HasId
"""A task: by its id, its handle, or its state as an answer gave it."""


def id_of(task: TaskRef) -> str:
    """The id of the task that is meant."""
    return task if isinstance(task, str) else task.id


@dataclass(frozen=True, kw_only=True)
class Filter:
    """Which tasks are meant. Everything that is set must match; nothing set matches all."""

    tasks: Iterable[TaskRef] = ()
    session: str = ""
    kinds: Iterable[TaskKind.ValueType] = ()
    states: Iterable[TaskState.ValueType] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    parent: TaskRef = ""

    def message(self) -> TaskFilter:
        """The contract's form of it."""
        return TaskFilter(
            task_ids=map(id_of, self.tasks),
            session_id=self.session,
            kinds=self.kinds,
            states=self.states,
            labels=self.labels,
            parent_id=id_of(self.parent),
        )
