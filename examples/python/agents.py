"""A host that keeps its subagents as hosted tasks, on Heeler.

Each member of its fleet is one task: a new version replaces the previous one. The host finds the
member that has gone silent, looks at its last blocks, stops it after its present tool call with
what it has found, and is idle itself once its background is quiet.
"""

from __future__ import annotations

import asyncio
import sys
import uuid

import heeler


async def reviewer(work: heeler.Work) -> heeler.WorkResult:
    """Reviews one file after the other until it is told to stop."""
    seen = 0
    while not work.stopping.is_set():
        seen += 1
        await work.tool_call("read", f"file {seen}")
        await asyncio.sleep(0.05)
        await work.report(intent=f"has read {seen} files", counts={"files": seen})
    return heeler.WorkResult.cancelled("stopped after its present file")


async def zombie(work: heeler.Work) -> heeler.WorkResult:
    """Waits for an answer that never comes."""
    await work.thought("the build server will answer soon")
    await work.tool_call("wait", "for the build server")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return heeler.WorkResult.cancelled("the build server does not answer")
    raise AssertionError("the event is never set")


class Fleet:
    """The members of one session: one live task for each name."""

    def __init__(self, session: heeler.Session) -> None:
        self._session = session
        self._hosting: set[asyncio.Task[heeler.BackgroundTask]] = set()

    async def start(self, name: str, body: heeler.Body) -> None:
        """Starts a member, in the place of the previous one of this name.

        Raises the daemon's refusal, or RuntimeError if the member is stopped before it begins.
        """
        has_begun = asyncio.Event()

        async def begin(work: heeler.Work) -> heeler.WorkResult | str | None:
            has_begun.set()
            return await body(work)

        hosted = self._session.host(
            begin,
            name=name,
            exclusive_key=f"{self._session.id}/{name}",
            exclusive_mode="replace",
            stale_after=3,
            soft_grace=1,
        )
        hosting = asyncio.create_task(hosted)
        beginning = asyncio.create_task(has_begun.wait())
        await asyncio.wait([hosting, beginning], return_when=asyncio.FIRST_COMPLETED)
        if not has_begun.is_set():
            beginning.cancel()
            state = heeler.TaskState((await hosting).state).name
            raise RuntimeError(f"{name} has not begun: its task is {state}")
        self._hosting.add(hosting)

    async def finished(self) -> None:
        """Waits until every member has returned."""
        await asyncio.gather(*self._hosting)


async def report(session: heeler.Session, is_watching: asyncio.Event) -> None:
    """Prints the starts and ends of members until the session is idle."""
    async with session.watch(types=["started", "ended", "session_idle"]) as watch:
        async for item in watch:
            if isinstance(item, heeler.Bookmark):
                # The first item: from here on, no event is missed.
                is_watching.set()
            elif isinstance(item, heeler.TaskEvent):
                if item.type == heeler.TaskEventType.SESSION_IDLE:
                    return
                task = item.task
                if item.type == heeler.TaskEventType.STARTED:
                    print(f"{task.spec.name} started")
                else:
                    reason = heeler.EndReason(task.end_reason).name
                    print(f"{task.spec.name} ended, {reason}: {task.result.text}")


async def next_silent(session: heeler.Session) -> heeler.BackgroundTask:
    """Waits until a member of the session is silent."""
    silent = heeler.Filter(stale=True)
    async with session.watch(initial_state=True, filter=silent, types=["stale"]) as watch:
        async for item in watch:
            if not isinstance(item, heeler.Bookmark):
                return item.task if isinstance(item, heeler.TaskEvent) else item
    raise AssertionError("a watch ends with an error")


async def main(session_id: str) -> None:
    """Runs the fleet."""
    async with heeler.connect_or_start() as client:
        session = client.session(session_id)
        is_watching = asyncio.Event()
        reporting = asyncio.create_task(report(session, is_watching))
        await is_watching.wait()

        fleet = Fleet(session)
        await fleet.start("reviewer", reviewer)
        await fleet.start("builder", zombie)
        silent = await next_silent(session)
        print(f"{silent.spec.name} is silent; its last blocks:")
        for block in (await client.inspect(silent, block_count=2)).blocks:
            print(f"  {heeler.BlockKind(block.kind).name} {block.name} {block.text}")
        await client.cancel_background_task(silent, reason="silent")

        await fleet.start("reviewer", reviewer)
        await session.cancel(reason="the conversation is over")
        await session.wait_until_idle()
        await fleet.finished()
        await reporting
        print("idle")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else str(uuid.uuid4())))
