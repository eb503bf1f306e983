"""The conformance set: the same calls and the same results as from every other client."""

import json
from collections.abc import Iterator

import pytest

import heeler
from cases import REPORT, Case, Failed, Step, all_cases, compare
from harness import Daemon
from heeler import Client
from stage import Stage, play

CASES = all_cases()


@pytest.fixture(scope="module")
def report() -> Iterator[dict[str, str]]:
    """What became of each case; written when all of them were played."""
    results: dict[str, str] = {}
    yield results
    if results.keys() == {case.name for case in CASES}:
        REPORT.parent.mkdir(parents=True, exist_ok=True)
        told = {"client": "python", "results": results}
        REPORT.write_text(json.dumps(told, indent=2) + "\n")


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
async def test_case(case: Case, report: dict[str, str]) -> None:
    report[case.name] = "failed: it did not end"
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
        {"do": "unheard"},
        {"do": "spawn", "with": {"unheard": 1}},
        {"do": "wait", "with": {"taskIds": ["shell-a"], "unheard": 1}},
        {"do": "list", "with": {"filter": {"unheard": 1}}},
        {"do": "list", "with": {"pageToken": "for the client alone"}},
        {"do": "inspect", "with": {"taskId": "shell-a", "unheard": 1}},
        {"do": "listQueues", "unheard": 1},
    ],
)
async def test_what_is_not_understood_fails(
    step: dict[str, object], daemon: Daemon, client: Client
) -> None:
    with pytest.raises(Failed):
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
def test_what_differs_fails(expected: object, found: object) -> None:
    with pytest.raises(Failed):
        compare(expected, found)


def test_what_is_the_same_passes() -> None:
    expected = {"n": 3, "t": True, "none": None, "l": [{"x": "~a+"}], "empty": ""}
    compare(expected, {"n": "3", "t": True, "l": [{"x": "aa", "more": 1}], "more": 1})
