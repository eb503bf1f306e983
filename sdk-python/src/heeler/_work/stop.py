"""The stop of a hosted task by the program that hosts it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from heeler._errors.base import HeelerError
from heeler._options.reason import reason_of

if TYPE_CHECKING:
    from heeler._calls.task import Task

_LIMIT = 5.0
"""Seconds for the daemon to record it. After that the result ends the task, or its lease."""


async def record_stop(task: Task, cause: BaseException) -> None:
    """Records that the caller was cancelled or interrupted, with the message of the exception.

    It has to be recorded before the result of the worker, which would end the task without it.
    """
    reason = reason_of(cause, f"the worker was ended by {type(cause).__name__}")
    with contextlib.suppress(HeelerError, asyncio.TimeoutError):
        # Without a soft phase: the work is told at once.
        await asyncio.wait_for(task.cancel(reason=reason, soft_grace=0, wait=False), _LIMIT)
