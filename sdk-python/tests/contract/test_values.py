"""The conversion of spans and outcomes."""

import math
from datetime import timedelta

import pytest

import heeler
from heeler import SpawnStage, v1
from heeler._options.time import to_duration


@pytest.mark.parametrize(
    ("span", "seconds", "nanos"),
    [
        (1.5, 1, 500_000_000),
        (-1.5, -1, -500_000_000),
        (timedelta(days=1, microseconds=1), 86_400, 1000),
        (math.inf, 315_576_000_000, 0),
        (1e300, 315_576_000_000, 0),
        (timedelta.max, 315_576_000_000, 0),
    ],
)
def test_spans_keep_their_value_and_very_long_ones_become_the_longest(
    span: float | timedelta, seconds: int, nanos: int
) -> None:
    """T3."""
    sent = to_duration(span)
    assert (sent.seconds, sent.nanos) == (seconds, nanos)


def test_a_span_of_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="NaN"):
        to_duration(math.nan)


def test_an_outcome_is_one_of_four_types_or_none() -> None:
    def read(outcome: v1.Outcome) -> heeler.Outcome | None:
        return heeler.outcome(v1.BackgroundTask(outcome=outcome))

    killed = v1.SignalOutcome(number=9, name="SIGKILL")
    stage = v1.SPAWN_STAGE_EXEC
    missing = v1.SpawnError(stage=stage, path="/x", message="no such file", errno=2)
    never_ran = heeler.NeverRan(SpawnStage.EXEC, "/x", "no such file", 2)
    assert read(v1.Outcome(exit_code=0)) == heeler.Exited(0)
    assert read(v1.Outcome(signal=killed)) == heeler.Signalled(9, "SIGKILL", False)
    assert read(v1.Outcome(spawn_error=missing)) == never_ran
    assert read(v1.Outcome(unknown=v1.UnknownOutcome(detail="?"))) == heeler.Unknown("?")
    delivered = heeler.Delivered(heeler.WorkerStatus.FAILED)
    assert read(v1.Outcome(worker=v1.WORKER_STATUS_FAILED)) == delivered
    assert heeler.outcome(v1.BackgroundTask()) is None
