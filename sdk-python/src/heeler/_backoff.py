"""When to try again: delays that grow, are bounded and differ between clients.

No clock of its own: it is told how long an attempt took.
"""

from __future__ import annotations

import random

FIRST = 0.010
LONGEST = 1.0


class Backoff:
    """The delays of one series of failures."""

    def __init__(self, patience: float | None) -> None:
        """`patience` is how long the series may last, in seconds; None: for ever."""
        self._patience = patience
        self._longest = LONGEST
        self.reset()

    def no_longer_than(self, longest: float) -> None:
        """Bounds each delay by this, too; no delay is shorter than the first for it."""
        self._longest = max(FIRST, min(LONGEST, longest))

    def reset(self) -> None:
        """Ends the series: what fails from now on is a new trouble."""
        self._spent = 0.0
        self._next = FIRST

    def after_failure(self, lasted: float, jitter: float | None = None) -> float | None:
        """How long to pause after an attempt that lasted this long; None: give up.

        An attempt that lasted longer than any delay had been heard, so its failure begins a new
        series. `jitter` is between 0 and 1, takes away up to half of the delay, and is random
        unless it is given.
        """
        if lasted > LONGEST:
            self.reset()
        else:
            self._spent += lasted
        if self._patience is not None and self._spent >= self._patience:
            return None
        share = random.random() if jitter is None else jitter
        delay = min(self._next, self._longest) * (1 - share / 2)
        self._next = min(self._next * 2, LONGEST)
        self._spent += delay
        return delay
