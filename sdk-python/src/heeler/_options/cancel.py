"""The options of a stop."""

from __future__ import annotations

from signal import Signals
from typing import TypedDict

from heeler._options.time import Span


class CancelOptions(TypedDict, total=False):
    """The options of a stop, as `Client.cancel` has them."""

    force: bool
    """Kills the whole tree at once."""
    grace: Span | None
    """Time between the stop signal and the kill, instead of the task's own."""
    soft_grace: Span | None
    """Time before the stop signal for a worker that listens, instead of the task's own."""
    signal: str | Signals
    """The stop signal, instead of the task's own."""
    reason: str
    """The reason of the requester, up to 4 KiB. It is kept with the task."""
    actor: str
    """The name of the requester. It is kept with the task."""
    wait: bool
    """True by default: the answer comes when every tree is proven empty."""
    cascade: bool
    """Also stops the tasks that the selected tasks have spawned, and theirs."""
