"""The pure parts: delays, spans of time, lines, outcomes, statuses."""

import inspect
import math
import signal
from collections.abc import AsyncIterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import grpc
import pytest
from google.protobuf.any_pb2 import Any
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from google.rpc.status_pb2 import Status

import heeler
from heeler import Chunk, Line, OutputStream, _output, v1
from heeler._backoff import FIRST, LONGEST, Backoff
from heeler._output import Lines
from heeler._spawn import SpawnOptions, spawn_request
from heeler._status import is_final, refusal
from heeler._time import to_proto
from heeler.v1.enums import ErrorReason

OUT, ERR = OutputStream.STDOUT, OutputStream.STDERR


def test_delays_double_up_to_the_longest() -> None:
    backoff = Backoff(None)
    delays = [backoff.after_failure(0, jitter=0) for _ in range(10)]
    assert delays[:3] == [0.01, 0.02, 0.04]
    assert delays[-1] == LONGEST


def test_jitter_takes_away_at_most_half() -> None:
    assert Backoff(None).after_failure(0, jitter=1) == FIRST / 2


def test_patience_counts_delays_and_attempts_and_ends() -> None:
    backoff = Backoff(0.03)
    assert backoff.after_failure(0.01, jitter=0) == FIRST
    assert backoff.after_failure(0.01, jitter=0) is None


def test_a_call_that_was_served_for_long_begins_anew() -> None:
    backoff = Backoff(0.03)
    while backoff.after_failure(0.01, jitter=0) is not None:
        pass
    assert backoff.after_failure(60, jitter=0) == FIRST


def test_delays_are_bounded_for_whoever_is_in_a_hurry_and_never_nothing() -> None:
    backoff = Backoff(None)
    backoff.no_longer_than(0.015)
    assert [backoff.after_failure(0, jitter=0) for _ in range(3)] == [FIRST, 0.015, 0.015]
    backoff.no_longer_than(0)
    assert backoff.after_failure(0, jitter=0) == FIRST


def test_no_patience_means_one_attempt() -> None:
    assert Backoff(0).after_failure(0) is None


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
    sent = to_proto(span)
    assert (sent.seconds, sent.nanos) == (seconds, nanos)


def test_a_span_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="NaN"):
        to_proto(math.nan)


async def given(chunks: list[tuple[int, OutputStream.ValueType, bytes]]) -> list[Line]:
    async def arriving() -> AsyncIterator[Chunk]:
        for offset, stream, data in chunks:
            yield Chunk(offset, stream, datetime.now(timezone.utc), data)

    return [line async for line in Lines(arriving())]


async def test_lines_are_put_together_for_each_stream_by_itself() -> None:
    lines = await given([(0, OUT, b"on"), (2, ERR, b"er"), (4, OUT, b"e\n\ntw"), (9, ERR, b"r\n")])
    assert lines == [
        Line(0, OUT, "one", True),
        Line(6, OUT, "", True),
        Line(2, ERR, "err", True),
        Line(7, OUT, "tw", False),
    ]


async def test_a_character_that_is_cut_between_chunks_is_whole_in_its_line() -> None:
    lines = await given([(0, OUT, b"\xc3"), (1, OUT, b"\xa4\xff\n")])
    assert [line.text for line in lines] == ["ä\ufffd"]


async def test_a_line_that_never_ends_is_given_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_output, "_LONGEST_LINE", 4)
    lines = await given([(0, OUT, b"abcdef"), (6, OUT, b"g\n")])
    assert lines == [Line(0, OUT, "abcdef", False), Line(6, OUT, "g", True)]


def test_an_outcome_is_one_of_four_things_or_none_yet() -> None:
    def told(outcome: v1.Outcome) -> heeler.Outcome | None:
        return heeler.outcome(v1.BackgroundTask(outcome=outcome))

    killed = v1.SignalOutcome(number=9, name="SIGKILL")
    missing = v1.SpawnError(operation="exec x", message="no", errno=2)
    assert told(v1.Outcome(exit_code=0)) == heeler.Exited(0)
    assert told(v1.Outcome(signal=killed)) == heeler.Signalled(9, "SIGKILL", False)
    assert told(v1.Outcome(spawn_error=missing)) == heeler.NeverRan("exec x", "no", 2)
    assert told(v1.Outcome(unknown=v1.UnknownOutcome(detail="?"))) == heeler.Unknown("?")
    assert heeler.outcome(v1.BackgroundTask()) is None


def refused(reason: str, domain: str = "heeler.dev") -> heeler.Refused:
    status, detail = Status(), Any()
    detail.Pack(ErrorInfo(reason=reason, domain=domain, metadata={"task_id": "shell-a"}))
    status.details.append(detail)
    return refusal(grpc.StatusCode.NOT_FOUND, "no such task", status)


def test_every_reason_of_the_contract_has_an_exception() -> None:
    for name in v1.ErrorReason.DESCRIPTOR.values_by_name:
        reason = name.removeprefix("ERROR_REASON_")
        if reason != "UNSPECIFIED":
            assert reason == type(refused(reason)).REASON
    assert isinstance(refused("TASK_NOT_FOUND"), heeler.TaskNotFound)


def test_a_newer_reason_keeps_its_name_and_another_domain_is_not_ours() -> None:
    newer = refused("NEW_REASON")
    assert (type(newer), newer.reason) == (heeler.Refused, "NEW_REASON")
    foreign = refused("TASK_NOT_FOUND", "example.com")
    assert (type(foreign), foreign.reason, dict(foreign.metadata)) == (heeler.Refused, None, {})


def test_bad_fields_are_named() -> None:
    status, detail = Status(), Any()
    violation = BadRequest.FieldViolation(field="grace", description="is negative")
    detail.Pack(BadRequest(field_violations=[violation]))
    status.details.append(detail)
    error = refusal(grpc.StatusCode.INVALID_ARGUMENT, "", status)
    assert error.fields == (heeler.FieldViolation("grace", "is negative"),)
    assert str(error) == "grace: is negative"
    assert is_final(error)


def test_enum_values_have_short_names_and_newer_ones_their_number() -> None:
    assert ErrorReason.name(ErrorReason.TASK_NOT_FOUND) == "TASK_NOT_FOUND"
    newer = v1.BackgroundTask.FromString(b"\x70\x63")
    assert heeler.TaskState.name(newer.state) == "99"


def test_every_field_of_a_spawn_has_an_option_and_every_option_is_sent() -> None:
    options = inspect.signature(spawn_request).parameters.keys() - {"command"}
    assert options == SpawnOptions.__annotations__.keys()
    request = spawn_request(
        "true",
        session="s",
        name="n",
        kind=heeler.TaskKind.AGENT,
        shell_program="/bin/sh",
        cwd="/",
        env={"ONE": "1", "TWO": None},
        env_defaults=heeler.EnvDefaults.NONE,
        labels={"a": "b"},
        parent="shell-a",
        timeout=1,
        grace=0,
        stop_signal=signal.SIGINT,
        request_id="r",
        placement=heeler.Placement.FOREGROUND,
        foreground_timeout=2,
        on_foreground_timeout=heeler.ForegroundTimeoutAction.CANCEL,
        on_holder_gone=heeler.HolderGoneAction.KEEP,
        holder_window=0,
        lingering=heeler.LingeringPolicy.KILL,
        idle_timeout=3,
        stale_after=4,
        stale_action=heeler.StaleAction.CANCEL,
        exclusive_key="k",
        exclusive_mode=heeler.ExclusiveMode.QUEUE,
        queue="q",
    )
    sent = {field.name for field, _ in request.ListFields()}
    assert {*v1.SpawnRequest.DESCRIPTOR.fields_by_name} - sent == {"argv"}
    assert request.HasField("holder_window")
    assert request.stop_policy.HasField("grace")
    assert spawn_request(["true", Path("/x")]).argv.args == ["true", "/x"]
