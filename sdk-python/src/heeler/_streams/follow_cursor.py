"""The position of a stream over many tasks. Pure: messages in, items out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from heeler._streams.output import Chunk, to_chunk
from heeler.v1 import (
    BackgroundTask,
    Bookmark,
    FollowOutputRequest,
    FollowOutputResponse,
    OutputCursor,
)


@dataclass(frozen=True)
class TaskBegun:
    """The stream begins to follow a task."""

    task: BackgroundTask


@dataclass(frozen=True)
class TaskOutput:
    """A chunk of the output of one task."""

    task_id: str
    chunk: Chunk


@dataclass(frozen=True)
class TaskEnded:
    """A task is finished, and all its output was delivered."""

    task: BackgroundTask


@dataclass(frozen=True)
class TaskGone:
    """A task does not exist any more."""

    task_id: str


FollowItem = TaskBegun | TaskOutput | TaskEnded | TaskGone
"""An item of a stream over many tasks."""


class FollowCursor:
    """The tasks that are followed, the offset of each, and the revision to resume after.

    The tasks that are there already are given only when all of them are known. A beginning that
    breaks off is requested again, and a part of the old one could name tasks that have ended since.
    """

    def __init__(self, first: FollowOutputRequest) -> None:
        self._first = first
        self._position: Bookmark | None = None
        self._beginning: list[FollowItem] = []
        self._tasks: dict[str, int | None] = {}
        self._offsets = {
            cursor.task_id: cursor.offset if cursor.HasField("offset") else None
            for cursor in first.cursors
        }
        self.finished = False
        """True after the last message."""

    def request(self) -> FollowOutputRequest:
        """Returns the request for the present position."""
        request = FollowOutputRequest()
        request.CopyFrom(self._first)
        if self._position is not None:
            request.ClearField("cursors")
            request.cursors.extend(
                OutputCursor(task_id=task, offset=offset) for task, offset in self._tasks.items()
            )
            request.after_revision = self._position.revision
            request.epoch = self._position.epoch
            request.include_finished = False
        return request

    def disconnected(self) -> None:
        """Drops a beginning that is not complete."""
        if self._position is None:
            self._beginning.clear()
            self._tasks.clear()

    def receive(self, message: FollowOutputResponse) -> list[FollowItem]:
        """Advances past a message and returns the items for the consumer."""
        items = list(self._items(message))
        if self._position is None:
            self._beginning += items
            return []
        self._position.revision = max(self._position.revision, message.revision)
        return items

    def _first_offset(self, task: BackgroundTask) -> int | None:
        """Returns the offset at which a task begins, if it is known before the first output.

        A task that has not started begins with its first byte, also if it has written more by the
        time of a break.
        """
        given = self._offsets.get(task.id)
        if given is None and not task.HasField("start_time"):
            return 0
        return given

    def _items(self, message: FollowOutputResponse) -> Iterator[FollowItem]:
        match message.WhichOneof("item"):
            case "task":
                # After a break, a task that is known comes again.
                if message.task.id not in self._tasks:
                    self._tasks[message.task.id] = self._first_offset(message.task)
                    yield TaskBegun(message.task)
            case "output":
                task_id = message.output.task_id
                self._tasks[task_id] = message.output.next_offset
                for chunk in message.output.chunks:
                    yield TaskOutput(task_id, to_chunk(chunk))
            case "ended":
                self._tasks.pop(message.ended.id, None)
                yield TaskEnded(message.ended)
            case "gone":
                self._tasks.pop(message.gone.task_id, None)
                yield TaskGone(message.gone.task_id)
            case "bookmark":
                self._position = Bookmark(revision=message.revision, epoch=message.bookmark.epoch)
                yield from self._beginning
                self._beginning = []
            case "finished":
                self.finished = True
            case None:
                pass  # An item that only newer clients know.
