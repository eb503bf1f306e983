"""Plays a case of the conformance set through the client's own methods."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import heeler
from cases import Case, Failed, Names, Step, compare, only
from fields import Fields, arguments, parse, refusal, spawn_arguments, texts_of, to_json
from harness import DEADLINE, Daemon, alive, eventually
from heeler import Bookmark, Chunk, v1
from heeler.v1.enums import CancelMode

T = TypeVar("T")
Done = tuple[Any, object]
"""A result, and what `as` keeps of it."""


async def play(case: Case, daemon: Daemon, client: heeler.Client) -> None:
    """Does every step of a case, with the daemon that it has for itself."""
    directory = daemon.directory / "case"
    directory.mkdir()
    await Stage(daemon, client, directory).steps(case.steps)


class Stage:
    """What a case has for itself, and a method for each step: `_do_` and its name."""

    def __init__(self, daemon: Daemon, client: heeler.Client, directory: Path) -> None:
        self._daemon = daemon
        self._client = client
        self._names = Names(directory)
        self._touched: set[Path] = set()

    async def steps(self, steps: Sequence[Step]) -> None:
        """Does them one after the other."""
        for step in steps:
            await self._named(step)

    async def _named(self, step: Step) -> None:
        """Does a step; if it fails, says which it was."""
        try:
            await self._step(step)
        except Failed as failed:
            raise Failed(f"{step.do} {dict(step.with_)}: {failed}") from failed

    async def _step(self, step: Step) -> None:
        method: Callable[[Fields], Awaitable[Done]] | None = getattr(self, f"_do_{step.do}", None)
        if method is None:
            raise Failed("no such step")
        try:
            result, kept = await method(self._names.fill(step.with_))
        except heeler.Refused as refused:
            if step.error is None:
                raise Failed(f"refused: {refused!r}") from refused
            compare(self._names.fill(step.error), refusal(refused), "error")
            return
        if step.error is not None:
            raise Failed(f"not refused: {result}")
        if step.as_ is not None:
            self._names.keep(step.as_, kept)
        if step.expect is not None:
            compare(self._names.fill(step.expect), result)

    async def _do_spawn(self, fields: Fields) -> Done:
        command, options = spawn_arguments(fields)
        task = await within(self._client.spawn(command, **options))
        assert task.spawned is not None
        return to_json(task.spawned), task.id

    async def _do_run(self, fields: Fields) -> Done:
        command, options = spawn_arguments(fields)
        result = await within(self._client.run(command, **options))
        released = v1.Released(task=result.task, reason=result.reason)
        texts = {"stdout": result.stdout.decode(), "stderr": result.stderr.decode()}
        return {"released": to_json(released), **texts}, result.task.id

    async def _do_attach(self, fields: Fields) -> Done:
        only(fields, "taskId", "offset")
        attachment = self._client.attach(fields["taskId"], offset=int(fields.get("offset", 0)))
        chunks = await within(collect(attachment))
        assert attachment.released is not None
        return {"released": to_json(attachment.released), **texts_of(chunks)}, None

    async def _do_detach(self, fields: Fields) -> Done:
        request = parse(v1.DetachRequest(), fields)
        names = {name: name for name in ("timeout", "reason", "actor")}
        options = arguments(request, {"task_id": "task", "session_id": "session", **names})
        return to_json(await within(self._client.detach(**options))), None

    async def _do_cancel(self, fields: Fields) -> Done:
        request = parse(v1.CancelRequest(), fields)
        force = request.mode == CancelMode.FORCE
        request.ClearField("mode")
        names = {name: name for name in ("grace", "signal", "reason", "actor", "wait", "cascade")}
        targets = {"task_id": "task", "session_id": "session", "filter": "matching"}
        # Unlike the contract, the client waits unless told not to.
        options = {"wait": False, **arguments(request, {**targets, **names})}
        return to_json(await within(self._client.cancel(force=force, **options))), None

    async def _do_list(self, fields: Fields) -> Done:
        request = parse(v1.ListRequest(), fields)
        names = {name: name for name in ("filter", "include_finished", "page_size")}
        tasks = self._client.list(**arguments(request, names))

        async def everything() -> list[Any]:
            return [to_json(task) async for task in tasks]

        return {"tasks": await within(everything())}, None

    async def _do_inspect(self, fields: Fields) -> Done:
        only(fields, "taskId")
        return to_json(await within(self._client.inspect(fields["taskId"]))), None

    async def _do_wait(self, fields: Fields) -> Done:
        request = parse(v1.WaitRequest(), fields)
        tasks = list(request.task_ids)
        request.ClearField("task_ids")
        names = {name: name for name in ("until", "count", "timeout")}
        options = arguments(request, {"session_id": "session", **names})
        return to_json(await within(self._client.wait(*tasks, **options))), None

    async def _do_read(self, fields: Fields) -> Done:
        request = parse(v1.ReadOutputRequest(), fields)
        names = {name: name for name in ("offset", "tail_bytes", "max_bytes", "wait", "view")}
        options = arguments(request, {"task_id": "task", **names})
        answer = await within(self._client.read_output(**options))
        data = b"".join(chunk.data or chunk.text.encode() for chunk in answer.chunks)
        result = to_json(answer)
        result.pop("chunks", None)
        return {**result, "text": data.decode()}, answer.next_offset

    async def _do_output(self, fields: Fields) -> Done:
        only(fields, "taskId")
        return texts_of(await within(collect(self._client.task(fields["taskId"]).output()))), None

    async def _do_watch(self, fields: Fields) -> Done:
        own = {"count", "during"}
        request = parse(
            v1.WatchEventsRequest(), {key: fields[key] for key in fields if key not in own}
        )
        during: Sequence[Step] | None = [Step.read(step) for step in fields.get("during", ())]
        after: int | Bookmark | None = None
        if request.HasField("after_revision"):
            after = Bookmark(revision=request.after_revision, state_id=request.state_id)
            request.ClearField("after_revision")
            request.ClearField("state_id")
        names = {name: name for name in ("initial_state", "filter", "types", "bookmark_interval")}
        events: list[v1.TaskEvent] = []
        async with self._client.watch(after=after, **arguments(request, names)) as watch:
            while len(events) < fields["count"]:
                item = await within(anext(watch))
                if isinstance(item, v1.TaskEvent):
                    events.append(item)
                elif isinstance(item, Bookmark) and during is not None:
                    steps, during = during, None
                    await self.steps(steps)
        return {"events": list(map(to_json, events))}, events[-1].revision

    async def _do_remove(self, fields: Fields) -> Done:
        request = parse(v1.RemoveRequest(), fields)
        tasks = list(request.tasks.task_ids)
        request.ClearField("tasks")
        options = arguments(request, {"finished": "finished"})
        return to_json(await within(self._client.remove(*tasks, **options))), None

    async def _do_updateQueue(self, fields: Fields) -> Done:  # noqa: N802
        request = parse(v1.UpdateQueueRequest(), fields)
        options = arguments(request, {name: name for name in ("name", "slots", "paused")})
        return to_json(await within(self._client.update_queue(**options))), None

    async def _do_listQueues(self, fields: Fields) -> Done:  # noqa: N802
        only(fields)
        return to_json(await within(self._client.list_queues())), None

    async def _do_restart(self, fields: Fields) -> Done:
        only(fields, "signal")
        ends = {"KILL": signal.SIGKILL, "TERM": signal.SIGTERM}
        await asyncio.to_thread(self._daemon.restart, ends[fields["signal"]])
        return None, None

    async def _do_touch(self, fields: Fields) -> Done:
        only(fields, "file")
        self._touch(Path(fields["file"]))
        return None, None

    def _touch(self, file: Path) -> None:
        self._touched.add(file)
        file.touch()

    async def _do_await(self, fields: Fields) -> Done:
        only(fields, "file")
        await asyncio.to_thread(self._await, Path(fields["file"]))
        return None, None

    def _await(self, file: Path) -> None:
        def there() -> bool:
            return file.exists() and (file in self._touched or file.stat().st_size > 0)

        eventually(there, f"{file} is there")

    async def _do_gone(self, fields: Fields) -> Done:
        only(fields, "file")
        pids = pids_in(Path(fields["file"]))
        left = list(filter(alive, pids))
        if left or not pids:
            raise Failed(f"still there: {left}, of {pids}")
        return None, None


async def within(work: Awaitable[T]) -> T:
    """The work of one step, with its deadline."""
    try:
        return await asyncio.wait_for(work, DEADLINE)
    except asyncio.TimeoutError as error:
        raise Failed(f"not within {DEADLINE} s") from error


async def collect(items: AsyncIterator[object]) -> list[Chunk]:
    """The output among the items."""
    return [item async for item in items if isinstance(item, Chunk)]


def pids_in(file: Path) -> list[int]:
    """Process ids, one a line."""
    return list(map(int, file.read_text().split()))
