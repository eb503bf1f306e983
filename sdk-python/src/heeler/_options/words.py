"""Enum values as options give them: a member of the enum, or its name in lower case."""

from __future__ import annotations

from heeler._open_enum import OpenEnum


def to_number(option: str, kind: type[OpenEnum], value: int | str) -> int:
    """Returns the number of a member or of a word such as `agent`.

    Raises ValueError for a word that the enum does not have.
    """
    if not isinstance(value, str):
        return value
    words = {member.name.lower(): member.value for member in kind if member.value != 0}
    if value not in words:
        raise ValueError(f"{option} must be one of {', '.join(words)}, not {value!r}")
    return words[value]
