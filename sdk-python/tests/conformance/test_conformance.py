"""The conformance cases: the same calls have the same results in every client."""

import json
from collections.abc import Iterator

import pytest

import heeler
from conformance.cases import REPORT, Case, CaseError, Step, all_cases, compare
from conformance.stage import Stage, play
from harness.daemon import Daemon
from heeler import Client

CASES = all_cases()


@pytest.fixture(scope="module")
def report() -> Iterator[dict[str, str]]:
    """The result of each case, written once all of them have run."""
    results: dict[str, str] = {}
    yield results
    if results.keys() == {case.name for case in CASES}:
        REPORT.parent.mkdir(parents=True, exist_ok=True)
        report = {"client": "python", "results": results}
        REPORT.write_text(json.dumps(report, indent=2) + "\n")


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
async def test_case(case: Case, report: dict[str, str]) -> None:
    report[case.name] = "failed: it did not finish"
    daemon = Daemon("s.sock", *case.serve)
    try:
        daemon.start()
        async with heeler.connect(daemon.address) as client:
            await play(case, daemon, client)
    except Exception as error:
        report[case.name] = f"failed: {error}"
        raise
    else:
        report[case.name] = "passed"
    finally:
        daemon.clean_up()


@pytest.mark.parametrize(
    "step",
    [
        {"do": "unknown"},
        {"do": "spawn", "with": {"unknown": 1}},
        {"do": "wait", "with": {"filter": {"taskIds": ["shell-a"]}, "unknown": 1}},
        {"do": "list", "with": {"filter": {"unknown": 1}}},
        {"do": "list", "with": {"pageToken": "for the client alone"}},
        {"do": "inspect", "with": {"taskId": "shell-a", "unknown": 1}},
        {"do": "listQueues", "unknown": 1},
    ],
)
async def test_an_unknown_step_or_field_fails(
    step: dict[str, object], daemon: Daemon, client: Client
) -> None:
    with pytest.raises(CaseError):
        await Stage(daemon, client, daemon.directory).steps([Step.read(step)])


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ({"a": 1}, {}),
        ({"a": None}, {"a": "x"}),
        ({"a": [1]}, {"a": [1, 2]}),
        ({"a": "~[0-9]+"}, {"a": "12x"}),
        ({"a": "~.*"}, {}),
        ({"a": True}, {"a": False}),
        ({"a": {"b": 1}}, {"a": [1]}),
    ],
)
def test_a_result_that_differs_fails(expected: object, found: object) -> None:
    with pytest.raises(CaseError):
        compare(expected, found)


def test_a_result_with_more_fields_passes() -> None:
    expected = {"n": 3, "t": True, "none": None, "l": [{"x": "~a+"}], "empty": ""}
    compare(expected, {"n": "3", "t": True, "l": [{"x": "aa", "more": 1}], "more": 1})
