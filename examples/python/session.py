"""The background half of an agent host's session, on Heeler.

It starts a shell and two subagents, reports the number of live tasks whenever it changes, stops the
subagent that has gone silent, and finishes when the session is idle. The daemon has the tasks: this
program may crash and start again without losing one.
"""

from __future__ import annotations

import asyncio
import sys
import uuid

import heeler


async def report(session: heeler.Session, is_watching: asyncio.Event) -> None:
    """Prints the ends of tasks and the number of live ones until the session is idle."""
    async with session.watch() as watch:
        async for item in watch:
            if isinstance(item, heeler.Bookmark):
                # The first item: from here on, no event is missed.
                is_watching.set()
            elif isinstance(item, heeler.TaskEvent):
                if item.type == heeler.TaskEventType.SESSION_IDLE:
                    return
                if item.type == heeler.TaskEventType.ENDED:
                    task = item.task
                    state = heeler.TaskState(task.state).name
                    print(f"{task.spec.name} {state} {task.stop.reason}".rstrip())
                counts = heeler.session_counts(item)
                if counts is not None:
                    print(f"live: {counts.agents} agents, {counts.shells} shells")


async def stop_silent_agents(client: heeler.Client, session: heeler.Session) -> None:
    """Stops each subagent of the session that goes silent. Runs until it is cancelled."""
    silent = heeler.Filter(kinds=["agent"], stale=True)
    async with session.watch(initial_state=True, filter=silent, types=["stale"]) as watch:
        async for item in watch:
            if isinstance(item, heeler.Bookmark):
                continue
            task = item.task if isinstance(item, heeler.TaskEvent) else item
            print(f"{task.spec.name} is silent")
            await client.cancel_background_task(task, reason="silent")


async def main(session_id: str) -> None:
    """Runs the session."""
    async with heeler.connect_or_start() as client:
        session = client.session(session_id)
        is_watching = asyncio.Event()
        reporting = asyncio.create_task(report(session, is_watching))
        stopping = asyncio.create_task(stop_silent_agents(client, session))
        await is_watching.wait()
        await session.spawn("sleep 0.5; echo built", name="builder")
        await session.spawn("sleep 1; echo found", kind="agent", name="researcher")
        await session.spawn("sleep 1000", kind="agent", name="stuck", stale_after=2)
        await session.wait_until_idle()
        await reporting
        print("idle")
        stopping.cancel()
        await asyncio.wait([stopping])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else str(uuid.uuid4())))
