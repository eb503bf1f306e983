"""From the JSON of the conformance set to the client's arguments, and back from its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from google.protobuf import json_format
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

import heeler
from cases import Failed
from heeler import Chunk, Filter, OutputStream, v1

M = TypeVar("M", bound=Message)
Fields = Mapping[str, Any]

FILTER = {
    "task_ids": "tasks",
    "session_id": "session",
    "kinds": "kinds",
    "states": "states",
    "labels": "labels",
    "parent_id": "parent",
}
SPAWN = {
    "request_id": "request_id",
    "session_id": "session",
    "name": "name",
    "kind": "kind",
    "working_directory": "cwd",
    "env_defaults": "env_defaults",
    "labels": "labels",
    "parent_id": "parent",
    "timeout": "timeout",
    "placement": "placement",
    "foreground_timeout": "foreground_timeout",
    "on_foreground_timeout": "on_foreground_timeout",
    "on_holder_gone": "on_holder_gone",
    "holder_window": "holder_window",
    "lingering": "lingering",
    "idle_timeout": "idle_timeout",
    "stale_after": "stale_after",
    "stale_action": "stale_action",
    "exclusive_key": "exclusive_key",
    "exclusive_mode": "exclusive_mode",
    "queue": "queue",
}


def parse(message: M, fields: Fields) -> M:
    """A message from the contract's JSON; a field that it does not have is an error."""
    try:
        return json_format.ParseDict(dict(fields), message)
    except json_format.ParseError as error:
        raise Failed(str(error)) from error


def to_json(message: Message) -> Any:
    """A message in the contract's JSON."""
    return json_format.MessageToDict(message)


def arguments(message: Message, names: Mapping[str, str]) -> dict[str, Any]:
    """The client's arguments for a message; a field without one is an error."""
    given = {}
    for field, value in message.ListFields():
        if field.name not in names:
            raise Failed(f"the client has no argument for {field.name}")
        given[names[field.name]] = argument(value)
    return given


def argument(value: Any) -> Any:
    """A field's value as the client takes it."""
    if isinstance(value, Duration):
        return value.ToTimedelta()
    if isinstance(value, v1.TaskFilter):
        return Filter(**arguments(value, FILTER))
    return value


def spawn_arguments(fields: Fields) -> tuple[Any, dict[str, Any]]:
    """The command and the options of a spawn."""
    request = parse(v1.SpawnRequest(), fields)
    options: dict[str, Any] = {}
    command: Any = request.shell.script
    if request.HasField("argv"):
        command = list(request.argv.args)
    elif request.shell.program:
        options["shell_program"] = request.shell.program
    if request.HasField("stop_policy"):
        names = {"grace": "grace", "signal": "stop_signal"}
        options |= arguments(request.stop_policy, names)
    if request.env or request.env_remove:
        options["env"] = {**request.env, **dict.fromkeys(request.env_remove)}
    for field in ("argv", "shell", "stop_policy", "env", "env_remove"):
        request.ClearField(field)
    return command, {**options, **arguments(request, SPAWN)}


def texts_of(chunks: Sequence[Chunk]) -> dict[str, str]:
    """What was written to each stream."""
    streams = {"stdout": OutputStream.STDOUT, "stderr": OutputStream.STDERR}
    return {
        name: b"".join(chunk.data for chunk in chunks if chunk.stream == stream).decode()
        for name, stream in streams.items()
    }


def refusal(refused: heeler.Refused) -> dict[str, Any]:
    """What is compared of a refusal."""
    return {
        "code": refused.code.name,
        "reason": refused.reason,
        "field": refused.fields[0].field if refused.fields else None,
        "metadata": dict(refused.metadata),
    }
