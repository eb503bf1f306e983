"""Runs the steps of a conformance case through the methods of the client.

A step with the name of a unary call makes it through the method of that name. Steps for which the
client has a richer method, and steps that are no calls, have a method `_do_` and their name here.
"""

from __future__ import annotations

import asyncio
import inspect
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from google.protobuf import json_format
from google.protobuf.message import Message

import heeler
from conformance.cases import Case, CaseError, Names, Step, compare, only
from harness.contract import CALLS, arguments, request_type, snake_case
from harness.daemon import DEADLINE, Daemon, alive, eventually
from heeler import Bookmark, Chunk, OutputStream, v1

T = TypeVar("T")
Fields = Mapping[str, Any]
Done = tuple[Any, object]
"""A result, and the value that `as` stores."""


async def play(case: Case, daemon: Daemon, client: heeler.Client) -> None:
    """Runs every step of a case against its own daemon."""
    directory = daemon.directory / "case"
    directory.mkdir()
    await Stage(daemon, client, directory).steps(case.steps)


class Stage:
    """The state of a case while it runs."""

    def __init__(self, daemon: Daemon, client: heeler.Client, directory: Path) -> None:
        self._daemon = daemon
        self._client = client
        self._names = Names(directory)
        self._touched: set[Path] = set()

    async def steps(self, steps: Sequence[Step]) -> None:
        """Runs steps one after the other."""
        for step in steps:
            await self._named(step)

    async def _named(self, step: Step) -> None:
        """Runs a step. A failure names it."""
        try:
            await self._step(step)
        except CaseError as error:
            raise CaseError(f"{step.do} {dict(step.with_)}: {error}") from error

    async def _step(self, step: Step) -> None:
        try:
            result, value = await self._do(step.do, self._names.fill(step.with_))
        except heeler.RefusedError as refused:
            if step.error is None:
                raise CaseError(f"refused: {refused!r}") from refused
            compare(self._names.fill(step.error), _refusal(refused), "error")
            return
        if step.error is not None:
            raise CaseError(f"not refused: {result}")
        if step.as_ is not None:
            self._names.store(step.as_, value)
        if step.expect is not None:
            compare(self._names.fill(step.expect), result)

    async def _do(self, name: str, fields: Fields) -> Done:
        own: Callable[[Fields], Awaitable[Done]] | None = getattr(
            self, f"_do_{snake_case(name)}", None
        )
        if own is not None:
            return await own(fields)
        call = name[0].upper() + name[1:]
        if call not in CALLS:
            raise CaseError("no such step")
        method = getattr(self._client, snake_case(name))
        answer = await within(checked(method, request_type(call), fields))
        if not isinstance(answer, Message):
            return {"results": list(map(to_json, answer)) or None}, None
        return to_json(answer), None

    async def _do_spawn(self, fields: Fields) -> Done:
        task = await within(checked(self._client.spawn, v1.SpawnRequest, fields))
        return to_json(task.spawned), task.id

    async def _do_run(self, fields: Fields) -> Done:
        def run(foreground: bool = True, **given: Any) -> Awaitable[heeler.RunResult]:
            return self._client.run(**given)

        result = await within(checked(run, v1.SpawnRequest, fields))
        ended = v1.AttachEnded(task=result.task, reason=result.reason)
        texts = {"stdout": result.stdout.decode(), "stderr": result.stderr.decode()}
        return {"ended": to_json(ended), **texts}, result.task.id

    async def _do_aborted_run(self, fields: Fields) -> Done:
        request = {key: fields[key] for key in fields if key not in {"once", "reason"}}

        def run(**given: Any) -> Awaitable[heeler.RunResult]:
            return self._client.run(**given)

        running = asyncio.ensure_future(checked(run, v1.SpawnRequest, request))
        await asyncio.to_thread(self._await, Path(fields["once"]))
        running.cancel(fields["reason"])
        await asyncio.wait([running], timeout=DEADLINE)
        if not running.cancelled():
            raise CaseError("the run was not cancelled")
        return None, None

    async def _do_attach(self, fields: Fields) -> Done:
        attachment = checked(self._client.attach, v1.AttachRequest, fields)
        chunks = await within(collect(attachment))
        return {"ended": to_json(attachment.ended), **texts_of(chunks)}, None

    async def _do_list(self, fields: Fields) -> Done:
        tasks = checked(self._client.list, v1.ListRequest, fields)

        async def everything() -> list[Any]:
            return [to_json(task) async for task in tasks]

        return {"tasks": await within(everything())}, None

    async def _do_read_output(self, fields: Fields) -> Done:
        answer = await within(checked(self._client.read_output, v1.ReadOutputRequest, fields))
        data = b"".join(chunk.data or chunk.text.encode() for chunk in answer.chunks)
        result = to_json(answer)
        result.pop("chunks", None)
        return {**result, "text": data.decode()}, answer.next_offset

    async def _do_output(self, fields: Fields) -> Done:
        during = [Step.read(step) for step in fields.get("during", ())]
        only({key: fields[key] for key in fields if key != "during"}, "taskId")
        chunks: list[Chunk] = []
        output = aiter(self._client.task(fields["taskId"]).output())
        while (chunk := await within(anext(output, None))) is not None:
            if not chunks:
                await self.steps(during)
            chunks.append(chunk)
        return texts_of(chunks), None

    async def _do_follow_output(self, fields: Fields) -> Done:
        tasks: dict[str, dict[str, Any]] = {}

        async def everything() -> None:
            async for item in checked(self._client.follow_output, v1.FollowOutputRequest, fields):
                match item:
                    case heeler.TaskBegun(task):
                        tasks[task.id] = {"id": task.id, "text": ""}
                    case heeler.TaskOutput(task_id, chunk):
                        tasks[task_id]["text"] += chunk.data.decode()
                    case heeler.TaskEnded(task):
                        tasks[task.id]["ended"] = to_json(task)
                    case heeler.TaskGone(task_id):
                        raise CaseError(f"gone: {task_id}")

        await within(everything())
        return {"tasks": list(tasks.values())}, None

    async def _do_work(self, fields: Fields) -> Done:
        only(fields, "requests", "during", "then")
        joined = asyncio.Event()
        result: dict[str, Any] = {"cancels": [], "messages": []}

        async def requests() -> AsyncIterator[v1.WorkRequest]:
            for request in fields["requests"]:
                yield json_format.ParseDict(request, v1.WorkRequest())
            await joined.wait()
            await self.steps([Step.read(step) for step in fields.get("during", ())])
            for request in fields.get("then", ()):
                yield json_format.ParseDict(request, v1.WorkRequest())

        async def responses() -> None:
            async for response in self._client.work(requests()):
                match response.WhichOneof("item"):
                    case "cancel" | "message" as kind:
                        result[f"{kind}s"].append(to_json(getattr(response, kind)))
                    case "acknowledged":
                        result["acknowledged"] = str(response.acknowledged.sequence)
                    case "joined" | "ended" as kind:
                        result[kind] = to_json(getattr(response, kind))
                joined.set()

        await within(responses())
        return result, result["joined"]["task"]["id"]

    async def _do_watch_events(self, fields: Fields) -> Done:
        request = {key: fields[key] for key in fields if key not in {"count", "during"}}
        during: Sequence[Step] | None = [Step.read(step) for step in fields.get("during", ())]
        events: list[v1.TaskEvent] = []
        async with checked(self._client.watch_events, v1.WatchEventsRequest, request) as watch:
            while len(events) < fields["count"]:
                item = await within(anext(watch))
                if isinstance(item, v1.TaskEvent):
                    events.append(item)
                elif isinstance(item, Bookmark) and during is not None:
                    steps, during = during, None
                    await self.steps(steps)
        return {"events": list(map(to_json, events))}, events[-1].revision

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
            raise CaseError(f"still there: {left}, of {pids}")
        return None, None


def checked(method: Callable[..., T], kind: type[Message], fields: Fields) -> T:
    """Calls a method with the arguments for a request, and fails on a field that it cannot take."""
    try:
        given = arguments(json_format.ParseDict(dict(fields), kind()))
        inspect.signature(method).bind(**given)
    except (json_format.ParseError, TypeError) as error:
        raise CaseError(str(error)) from error
    return method(**given)


async def within(work: Awaitable[T]) -> T:
    """Awaits the work of one step, with its deadline."""
    try:
        return await asyncio.wait_for(work, DEADLINE)
    except asyncio.TimeoutError as error:
        raise CaseError(f"not within {DEADLINE} s") from error


def to_json(message: Message | None) -> Any:
    """Converts a message to the contract's JSON."""
    return None if message is None else json_format.MessageToDict(message)


async def collect(items: AsyncIterator[object]) -> list[Chunk]:
    """Returns the output among the items."""
    return [item async for item in items if isinstance(item, Chunk)]


def texts_of(chunks: Sequence[Chunk]) -> dict[str, str]:
    """Returns the text of each stream."""
    streams = {"stdout": OutputStream.STDOUT, "stderr": OutputStream.STDERR}
    return {
        name: b"".join(chunk.data for chunk in chunks if chunk.stream == stream).decode()
        for name, stream in streams.items()
    }


def pids_in(file: Path) -> list[int]:
    """Reads process ids, one a line."""
    return list(map(int, file.read_text().split()))


def _refusal(refused: heeler.RefusedError) -> dict[str, Any]:
    return {
        "code": refused.code.name,
        "reason": refused.reason,
        "field": refused.fields[0].field if refused.fields else None,
        "metadata": dict(refused.metadata),
    }
