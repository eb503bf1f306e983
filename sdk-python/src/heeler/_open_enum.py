"""The base of the contract's enums: IntEnums that accept numbers of a newer daemon."""

from __future__ import annotations

from enum import IntEnum


class OpenEnum(IntEnum):
    """An enum of the contract.

    The fields of messages are plain integers. They compare equal to the members, and
    `TaskState(task.state)` is the member itself. A number that this version does not know becomes
    a member with that number as its name.
    """

    @classmethod
    def _missing_(cls, value: object) -> OpenEnum | None:
        if not isinstance(value, int):
            return None
        member = int.__new__(cls, value)
        member._name_, member._value_ = str(value), value
        return member
