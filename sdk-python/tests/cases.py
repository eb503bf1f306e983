"""The conformance set as it is written: its cases, their names, and what a result has to be."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests/conformance/cases.json"
REPORT = ROOT / "target/conformance/python.json"


class Failed(AssertionError):
    """A case is not as it should be, in itself or in what came of it."""


@dataclass(frozen=True)
class Step:
    """One thing to do, and what has to come of it."""

    do: str
    with_: Mapping[str, Any]
    as_: str | None
    expect: Any
    error: Mapping[str, Any] | None

    @staticmethod
    def read(step: Mapping[str, Any]) -> Step:
        """A step as it is written."""
        only(step, "do", "with", "as", "expect", "error")
        only(step.get("error", {}), "code", "reason", "field", "metadata")
        if "expect" in step and "error" in step:
            raise Failed(f"a step has both expect and error: {step}")
        return Step(
            step["do"], step.get("with", {}), step.get("as"), step.get("expect"), step.get("error")
        )


@dataclass(frozen=True)
class Case:
    """Steps, and the daemon that they are done with."""

    name: str
    serve: tuple[str, ...]
    steps: tuple[Step, ...]

    @staticmethod
    def read(case: Mapping[str, Any]) -> Case:
        """A case as it is written."""
        only(case, "name", "shows", "serve", "steps")
        return Case(
            case["name"], tuple(case.get("serve", ())), tuple(map(Step.read, case["steps"]))
        )


def all_cases() -> list[Case]:
    """Every case there is."""
    return [Case.read(case) for case in json.loads(CASES.read_text())]


def only(fields: Mapping[str, Any], *known: str) -> None:
    """Nothing is passed over silently."""
    if unknown := fields.keys() - set(known):
        raise Failed(f"not understood: {', '.join(sorted(unknown))}")


class Names:
    """What steps have kept, for the texts of later ones."""

    def __init__(self, directory: Path) -> None:
        self._values = {"DIR": str(directory)}

    def keep(self, name: str, value: object) -> None:
        """Keeps a value under a name."""
        self._values[name] = str(value)

    def fill(self, value: Any) -> Any:
        """The same with every `$name` in its texts replaced; one that is not known is as it was.

        The steps within a step are left alone: their turn comes later.
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
    """Fails unless what was found is what was expected."""
    wrong = Failed(f"{path}: {json.dumps(found)}, not {json.dumps(expected)}")
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
    # A text that is empty is at its default, and so left out.
    text = "" if found is None else _text(found)
    if found is None and expected:
        return False
    if expected.startswith("~"):
        return re.fullmatch(expected[1:], text, re.S) is not None
    return text == expected


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
