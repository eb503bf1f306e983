"""The fleet of the example: the start of a member fails if the member does not begin."""

import asyncio
import runpy
from pathlib import Path
from typing import Any

import pytest

import heeler
from harness.daemon import DEADLINE
from heeler import Client

EXAMPLE = Path(__file__).resolve().parents[3] / "examples/python/agents.py"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


async def test_a_member_that_is_refused_is_not_waited_for(
    client: Client, example: dict[str, Any]
) -> None:
    fleet = example["Fleet"](client.session("s" * 300))
    with pytest.raises(heeler.InvalidFieldError, match="longer than 256 bytes"):
        await asyncio.wait_for(fleet.start("reviewer", example["reviewer"]), DEADLINE)
    await fleet.finished()


async def test_a_member_that_is_stopped_before_it_begins_is_not_waited_for(
    client: Client, example: dict[str, Any]
) -> None:
    session = client.session("s1")
    fleet = example["Fleet"](session)
    async with session.watch(types=["created"]) as watch:
        await anext(watch)
        # Its previous task does not react, so the member has to wait.
        async with await client.register(exclusive_key="s1/reviewer", soft_grace=DEADLINE):
            starting = asyncio.create_task(fleet.start("reviewer", example["reviewer"]))
            async for item in watch:
                if isinstance(item, heeler.TaskEvent) and item.task.spec.name == "reviewer":
                    await client.cancel_background_task(item.task)
                    break
            with pytest.raises(RuntimeError, match="reviewer has not begun"):
                await asyncio.wait_for(starting, DEADLINE)
    await fleet.finished()
