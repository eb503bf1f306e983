"""The contract by its descriptors, and the client's arguments for a request, by convention.

The method of a call has its name in snake case. An argument has the name of its field, and a group
is flattened. Exceptions are in the name tables of the client itself, and below.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from google.protobuf import message_factory
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from heeler import Bookmark, Filter, v1
from heeler._options import filter as filter_options
from heeler._options import spawn as spawn_options
from heeler._options.names import OTHERS
from heeler.v1 import background_tasks_pb2

CALLS = background_tasks_pb2.DESCRIPTOR.services_by_name["BackgroundTasks"].methods_by_name
"""The calls of the service, by name."""


class NoArgumentError(AssertionError):
    """A field of a request has no argument in the client."""


def method_name(call: str) -> str:
    """Returns the name of the client's method that makes exactly this call."""
    name = snake_case(call)
    return "list_page" if name == "list" else name


def snake_case(name: str) -> str:
    """Converts `UpdateQueue` and `updateQueue` to `update_queue`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def request_type(call: str) -> type[Message]:
    """Returns the class of the request of a call."""
    return message_factory.GetMessageClass(CALLS[call].input_type)


def arguments(request: Message) -> dict[str, Any]:
    """Returns the arguments of the method for a request."""
    if isinstance(request, v1.SpawnRequest):
        return _spawn_arguments(request)
    given: dict[str, Any] = {}
    for field in request.DESCRIPTOR.fields:
        if field.has_presence and not request.HasField(field.name):
            continue
        value = getattr(request, field.name)
        # Only `list_page` has it: an iterator over tasks has no ports.
        if field.name == "include_ports" and not value:
            continue
        # The default of a flag in the client may differ from the contract's.
        if value or field.has_presence or isinstance(value, bool):
            given |= _argument(field.name, value)
    streams = (v1.WatchEventsRequest, v1.FollowOutputRequest)
    if isinstance(request, streams) and "after" in given:
        given["after"] = Bookmark(revision=request.after_revision, epoch=request.epoch)
    return given


def _argument(name: str, value: Any) -> dict[str, Any]:
    match value:
        case Duration():
            return {name: value.ToTimedelta()}
        case v1.TaskFilter():
            return {name: Filter(**_flatten(value, filter_options.FIELDS))}
        case Timestamp() | v1.OutputFilter() | v1.HeadAndTail() | v1.OutputSearch():
            return {name: value}
        case v1.ForcedStop():
            return {name: True}
        case v1.SessionOwnership():
            return _flatten(value, {"own_session": "session_id"})
        case Message():
            return arguments(value)
        case _:
            return {OTHERS.get(name, name): value}


def _spawn_arguments(request: v1.SpawnRequest) -> dict[str, Any]:
    spec = v1.TaskSpec()
    spec.CopyFrom(request.spec)
    given: dict[str, Any] = {"command": spec.shell.script}
    if request.request_id:
        given["request_id"] = request.request_id
    if spec.HasField("argv"):
        given["command"] = list(spec.argv.args)
    elif spec.shell.program:
        given["shell_program"] = spec.shell.program
    for group in ("foreground", "input", "terminal"):
        if spec.HasField(group):
            given[group] = True
    environment = spec.environment
    if environment.variables or environment.remove:
        given["env"] = {**environment.variables, **dict.fromkeys(environment.remove)}
    environment.ClearField("variables")
    environment.ClearField("remove")
    spec.ClearField("command")
    given |= _flatten(spec, spawn_options.FIELDS)
    if unknown := given.keys() - {"command"} - spawn_options.SpawnOptions.__annotations__.keys():
        raise NoArgumentError(f"spawn has no option for {', '.join(sorted(unknown))}")
    return given


def _flatten(message: Message, paths: Mapping[str, str], prefix: str = "") -> dict[str, Any]:
    """Returns the options for the fields that are set. `paths` is the table of the client."""
    names = {path: option for option, path in paths.items()}
    given: dict[str, Any] = {}
    for field, value in message.ListFields():
        path = prefix + field.name
        if isinstance(value, Duration):
            given[names.get(path, path)] = value.ToTimedelta()
        elif isinstance(value, Message):
            given |= _flatten(value, paths, f"{path}.")
        else:
            given[names.get(path, path)] = value
    return given
