"""Delays between attempts: they grow, are bounded and differ between clients.

It has no clock: the caller passes the duration of each attempt.
"""

from __future__ import annotations

import random

FIRST = 0.010
LONGEST = 1.0


class Backoff:
    """The delays of one series of failures."""

    def __init__(self, give_up_after: float | None) -> None:
        """`give_up_after` limits the series, in seconds. None: no limit."""
        self._give_up_after = give_up_after
        self._longest = LONGEST
        self.reset()

    def limit_delay(self, longest: float) -> None:
        """Limits each delay to this many seconds, but not below the first delay."""
        self._longest = max(FIRST, min(LONGEST, longest))

    def reset(self) -> None:
        """Ends the series: the next failure begins a new one."""
        self._spent = 0.0
        self._next = FIRST

    def after_failure(
        self, lasted: float, *, connected: bool, jitter: float | None = None
    ) -> float | None:
        """Returns the delay after an attempt that lasted this long, or None to give up.

        An attempt that had a connection and lasted longer than any delay was served, so its failure
        begins a new series. One that could not connect is time without a daemon, however long.
        `jitter`, between 0 and 1, takes away up to half of the delay; it is random unless given.
        """
        if connected and lasted > LONGEST:
            self.reset()
        else:
            self._spent += lasted
        if self._give_up_after is not None and self._spent >= self._give_up_after:
            return None
        share = random.random() if jitter is None else jitter
        delay = min(self._next, self._longest) * (1 - share / 2)
        self._next = min(self._next * 2, LONGEST)
        self._spent += delay
        return delay
