"""The messages of a worker to the daemon, in the order in which they are sent. Pure.

Numbered messages are kept until the daemon has acknowledged them. The latest receipt is kept as
well. A sign of activity is not: it has no meaning on a later stream.
"""

from __future__ import annotations

from collections import deque

from heeler.v1 import (
    ProgressUpdate,
    WorkerResult,
    WorkHeartbeat,
    WorkMessageReceipt,
    WorkRequest,
)

_UNACKNOWLEDGED = 256
"""Reports that may be without an acknowledgement. Further ones wait."""


class Outbox:
    """The messages that are still to be sent, or sent again."""

    def __init__(self) -> None:
        self._kept: deque[WorkRequest] = deque()
        self._latest = 0
        self._sent = 0
        self._received = 0
        self._receipt_sent = 0
        self._is_active = False
        self._result: int | None = None
        self._acknowledged = 0

    @property
    def has_room(self) -> bool:
        """True if another report may be added."""
        return len(self._kept) < _UNACKNOWLEDGED

    @property
    def is_empty(self) -> bool:
        """True if the daemon has acknowledged everything."""
        return not self._kept

    @property
    def has_result(self) -> bool:
        """True once a result was added."""
        return self._result is not None

    @property
    def is_delivered(self) -> bool:
        """True once the daemon has acknowledged the result."""
        return self._result is not None and self._result <= self._acknowledged

    def report(self, update: ProgressUpdate) -> None:
        """Adds progress."""
        self._push(WorkRequest(progress=update))

    def deliver(self, result: WorkerResult) -> None:
        """Adds a result."""
        self._push(WorkRequest(result=result))
        self._result = self._latest

    def beat(self) -> None:
        """Adds a sign of activity, unless one waits."""
        self._is_active = True

    def receive(self, number: int) -> None:
        """Adds the receipt of all messages up to a number."""
        self._received = number

    def acknowledge(self, sequence: int) -> None:
        """Drops the messages up to a number."""
        self._acknowledged = max(self._acknowledged, sequence)
        while self._kept and self._kept[0].sequence <= sequence:
            self._kept.popleft()

    def begin_stream(self, acknowledged: int) -> None:
        """Begins a new stream, with everything after the latest number that is durable."""
        self.acknowledge(acknowledged)
        self._latest = max(self._latest, acknowledged)
        self._sent = 0
        self._receipt_sent = 0
        self._is_active = False

    def next(self) -> WorkRequest | None:
        """Returns the next message of this stream. None: there is none now."""
        if self._received > self._receipt_sent:
            self._receipt_sent = self._received
            return WorkRequest(receipt=WorkMessageReceipt(number=self._received))
        if self._kept and self._kept[-1].sequence > self._sent:
            # The numbers have no gaps.
            request = self._kept[max(0, self._sent + 1 - self._kept[0].sequence)]
            self._sent = request.sequence
            return request
        if self._is_active:
            self._is_active = False
            return WorkRequest(heartbeat=WorkHeartbeat(lease_only=False))
        return None

    def _push(self, request: WorkRequest) -> None:
        self._latest += 1
        request.sequence = self._latest
        self._kept.append(request)
