"""Converts spans and moments between Python and protobuf."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

Span = float | timedelta
"""A length of time: seconds, or a timedelta."""

Time = datetime | Timestamp
"""A moment."""

_MAX_SECONDS = 315_576_000_000
"""The longest protobuf Duration: about 10,000 years."""
_NANOS = 1_000_000_000


def to_duration(span: Span) -> Duration:
    """Returns a span for a request. One that is too long becomes the longest Duration."""
    total = _nanoseconds(span)
    sign = -1 if total < 0 else 1
    seconds, nanos = divmod(abs(total), _NANOS)
    return Duration(seconds=sign * seconds, nanos=sign * nanos)


def to_optional_duration(span: Span | None) -> Duration | None:
    """Returns None for None, which stands for the default of the daemon."""
    return None if span is None else to_duration(span)


def to_seconds(span: Span) -> float:
    """Returns the span in seconds."""
    return span.total_seconds() if isinstance(span, timedelta) else float(span)


def to_optional_seconds(span: Span | None) -> float | None:
    """Returns None for None, which stands for no limit."""
    return None if span is None else to_seconds(span)


def to_optional_timestamp(time: Time | None) -> Timestamp | None:
    """Returns a moment for a request. A datetime without a time zone is in local time."""
    if time is None or isinstance(time, Timestamp):
        return time
    timestamp = Timestamp()
    timestamp.FromDatetime(time.astimezone(timezone.utc))
    return timestamp


def to_datetime(timestamp: Timestamp) -> datetime:
    """Returns a moment of an answer, in UTC."""
    return timestamp.ToDatetime(tzinfo=timezone.utc)


def _nanoseconds(span: Span) -> int:
    if isinstance(span, timedelta):
        whole = (span.days * 86_400 + span.seconds) * _NANOS + span.microseconds * 1000
        return max(-_MAX_SECONDS * _NANOS, min(_MAX_SECONDS * _NANOS, whole))
    if math.isnan(span):
        raise ValueError("a span of time cannot be NaN")
    return round(max(-_MAX_SECONDS, min(_MAX_SECONDS, span)) * _NANOS)
