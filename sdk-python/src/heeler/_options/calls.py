"""The options of calls that a client and a session have in common.

`Client` has them as arguments, with their defaults; a session passes them on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypedDict

from heeler._options.spawn import SessionRunOptions
from heeler._options.time import Span
from heeler.v1 import Bookmark
from heeler.v1.enums import TaskEventTypeWord

if TYPE_CHECKING:
    from heeler._streams.output import Chunk


class RunControl(TypedDict, total=False):
    """The options of `run` that are no options of the task."""

    on_output: Callable[[Chunk], object] | None
    """Gets the output chunk by chunk. The result then has none."""
    detach_on_cancel: bool
    """Detaches the command if the caller is cancelled or fails, instead of cancelling it."""
    cancel_reason: str
    """The reason for a cancellation without a message."""
    give_up_after: Span | None
    """Time for which a daemon that restarts is waited for. No limit by default."""


class SessionRunCall(SessionRunOptions, RunControl, total=False):
    """All options of `Session.run`."""


class ListOptions(TypedDict, total=False):
    """The options of `list`, besides the filter."""

    include_finished: bool
    """Also returns finished tasks."""
    include_finished_foreground: bool
    """Also returns tasks that finished in the foreground."""
    page_size: int
    """The number of tasks that one call returns."""


class WatchOptions(TypedDict, total=False):
    """The options of a watch, besides the filter."""

    after: int | Bookmark | None
    """A revision (0: every event that is kept) or a stored Bookmark. From now on by default."""
    initial_state: bool
    """Returns every live task first."""
    types: Iterable[TaskEventTypeWord]
    """The events to return. All by default."""
    bookmark_interval: Span | None
    """Time after which a Bookmark is sent although nothing happened."""
    summaries: bool
    """Tells the end of a task in words, in its ENDED event."""
    own_session: str | None
    """Makes the client an owner of a session as long as the stream lasts."""
    reattach_window: Span | None
    """Time for an owner of the session to come back. 10 s by default."""
    give_up_after: Span | None
    """Time for which a daemon that is away is waited for. No limit by default."""
