"""Refuses options that a function does not have.

Functions that take their options as `**options` share one table of them, so Python cannot refuse an
unknown one by itself.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping


def check_options(function: str, given: Mapping[str, object], known: type) -> None:
    """Raises TypeError for an option that the TypedDict `known` does not have."""
    names = known.__annotations__.keys()
    for option in given:
        if option not in names:
            near = difflib.get_close_matches(option, names, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{function}() got an unexpected keyword argument {option!r}{hint}")
