"""The names of the contract's fields in this package."""

from __future__ import annotations

import re

from heeler._options import filter as filter_options
from heeler._options import spawn as spawn_options

_SPEC = {path: option for option, path in spawn_options.FIELDS.items()} | {
    "command": "command",
    "shell.script": "command",
    "shell.program": "shell_program",
    "argv.args": "command",
    "environment.variables": "env",
    "environment.remove": "env",
}
_FILTER = {field: option for option, field in filter_options.FIELDS.items()}
OTHERS = {
    "task_id": "task",
    "after_revision": "after",
    "epoch": "after",
    "own_session.session_id": "own_session",
    "own_session.reattach_window": "reattach_window",
    "graceful.grace": "grace",
    "graceful.soft_grace": "soft_grace",
    "graceful.signal": "signal",
}
"""The arguments of other calls whose names differ from those of their fields."""


def option_of(field: str) -> str:
    """Returns the argument for a field of a request: `grace` for `spec.stop.grace`.

    An index or a key at the end is kept: `labels["a"]` for `spec.labels["a"]`.
    """
    field = field.removeprefix("register.").removeprefix("join.")
    path, index = re.fullmatch(r"([^\[]*)(.*)", field, re.S).groups()  # type: ignore[union-attr]
    group, dot, rest = path.partition(".")
    if dot and group == "spec":
        return _SPEC.get(rest, rest) + index
    if dot and group == "filter":
        return f"filter.{_FILTER.get(rest, rest)}{index}"
    return OTHERS.get(path, path) + index
