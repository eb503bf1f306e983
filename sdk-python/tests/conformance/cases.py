"""The conformance cases: reading them, the names that steps store, and comparing results."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
CASES = ROOT / "tests/conformance/cases.json"
REPORT = ROOT / "target/conformance/python.json"


class CaseError(AssertionError):
    """A case is malformed, or a result differs from what it expects."""


@dataclass(frozen=True)
class Step:
    """One step: a call or an action, and the expected result."""

    do: str
    with_: Mapping[str, Any]
    as_: str | None
    expect: Any
    error: Mapping[str, Any] | None

    @staticmethod
    def read(step: Mapping[str, Any]) -> Step:
        """Reads a step."""
        only(step, "do", "with", "as", "expect", "error")
        only(step.get("error", {}), "code", "reason", "field", "metadata")
        if "expect" in step and "error" in step:
            raise CaseError(f"a step has both expect and error: {step}")
        return Step(
            step["do"], step.get("with", {}), step.get("as"), step.get("expect"), step.get("error")
        )


@dataclass(frozen=True)
class Case:
    """Steps, and the arguments of the daemon that they run against."""

    name: str
    serve: tuple[str, ...]
    steps: tuple[Step, ...]

    @staticmethod
    def read(case: Mapping[str, Any]) -> Case:
        """Reads a case."""
        only(case, "name", "shows", "serve", "steps")
        return Case(
            case["name"], tuple(case.get("serve", ())), tuple(map(Step.read, case["steps"]))
        )


def all_cases() -> list[Case]:
    """Reads all cases."""
    return [Case.read(case) for case in json.loads(CASES.read_text())]


def only(fields: Mapping[str, Any], *known: str) -> None:
    """Fails on a field that is not known."""
    if unknown := fields.keys() - set(known):
        raise CaseError(f"unknown fields: {', '.join(sorted(unknown))}")


class Names:
    """The values that steps have stored, for the strings of later steps."""

    def __init__(self, directory: Path) -> None:
        self._values = {"DIR": str(directory)}

    def store(self, name: str, value: object) -> None:
        """Stores a value under a name."""
        self._values[name] = str(value)

    def fill(self, value: Any) -> Any:
        """Replaces every known `$name` in the strings of a value.

        The steps within a step are left alone: their strings are filled when they run.
        """
        if isinstance(value, str):
            found = lambda match: self._values.get(match[1], match[0])  # noqa: E731
            return re.sub(r"\$([A-Za-z][A-Za-z0-9]*)", found, value)
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        if isinstance(value, dict):
            return {
                key: item if key == "during" else self.fill(item) for key, item in value.items()
            }
        return value


def compare(expected: Any, found: Any, path: str = "result") -> None:
    """Fails unless the result has the expected content."""
    wrong = CaseError(f"{path}: {json.dumps(found)}, not {json.dumps(expected)}")
    if expected is None:
        if found is not None:
            raise wrong
    elif isinstance(expected, dict):
        for field, inner in expected.items():
            compare(inner, found.get(field) if isinstance(found, dict) else None, f"{path}.{field}")
    elif isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            raise wrong
        for at, (inner, item) in enumerate(zip(expected, found, strict=True)):
            compare(inner, item, f"{path}[{at}]")
    elif not _matches(_text(expected), found):
        raise wrong


def _matches(expected: str, found: Any) -> bool:
    if isinstance(found, (dict, list)):
        return False
    # The JSON mapping leaves out an empty string.
    text = "" if found is None else _text(found)
    if found is None and expected:
        return False
    if expected.startswith("~"):
        return re.fullmatch(expected[1:], text, re.S) is not None
    return text == expected


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
