"""The client has a method for every call of the contract, and an argument for every field.

A call without a method, a field of a request without an argument, or an argument that is not sent
fails here.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import grpc
import pytest
from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

import heeler
import heeler.sync
from harness.contract import CALLS, arguments, method_name, request_type
from heeler import Address, Client, v1
from heeler._calls import client as client_module
from heeler._options import filter as filter_options
from heeler._options import spawn as spawn_options
from heeler._options.calls import ListOptions, RunControl, WatchOptions
from heeler._options.cancel import CancelOptions
from heeler._options.names import option_of
from heeler._options.spawn import spawn_request
from heeler.v1 import enums

OUTPUT_ONLY = {"heeler.v1.TaskEnvironment.variable_names"}


class RequestSentError(Exception):
    """Ends a stream once its request was sent."""


class RecordingChannel:
    """A channel that keeps every request and answers with an empty message."""

    def __init__(self) -> None:
        self.requests: list[Message] = []

    def unary_unary(
        self, _path: str, response_deserializer: Callable[[bytes], Message], **_: Any
    ) -> Callable[[Message], Awaitable[Message]]:
        """Returns a callable with one answer."""

        async def call(request: Message) -> Message:
            self.requests.append(request)
            return response_deserializer(b"")

        return call

    def stream_stream(self, _path: str, **_: Any) -> Callable[[Any], Any]:
        """Returns a callable with a stream in both directions that fails after one request."""

        def call(requests: AsyncIterator[Message]) -> Any:
            async def read() -> None:
                self.requests.append(await anext(requests))
                raise RequestSentError

            return SimpleNamespace(read=read, cancel=lambda: None)

        return call

    def unary_stream(self, _path: str, **_: Any) -> Callable[[Message], Any]:
        """Returns a callable with a stream that fails at once."""

        async def read() -> None:
            raise RequestSentError

        def call(request: Message) -> Any:
            self.requests.append(request)
            return SimpleNamespace(read=read, cancel=lambda: None)

        return call


@pytest.fixture
def channel() -> RecordingChannel:
    return RecordingChannel()


@pytest.fixture
def recorded(channel: RecordingChannel, monkeypatch: pytest.MonkeyPatch) -> Client:
    # The time that passes before an attempt shortens the timeout of a wait.
    monkeypatch.setattr(client_module, "time", SimpleNamespace(monotonic=lambda: 0.0))
    return Client(cast(grpc.aio.Channel, channel), Address.parse("unix:/none"), 0)


@pytest.mark.parametrize("call", CALLS)
async def test_every_field_of_every_request_is_sent(
    call: str, recorded: Client, channel: RecordingChannel
) -> None:
    method = getattr(recorded, method_name(call))
    for request in filled(request_type(call)):
        if CALLS[call].client_streaming:
            result = method(one(request))
        else:
            result = method(**arguments(request))
        if inspect.isawaitable(result):
            await result
        else:
            with pytest.raises(RequestSentError):
                await anext(result)
        assert channel.requests.pop() == request


async def one(request: Message) -> AsyncIterator[Message]:
    """Yields one request."""
    yield request


def filled(kind: type[Message]) -> Iterator[Message]:
    """Yields messages with a value in every field: one message for each member of a oneof."""
    descriptor: Any = kind.DESCRIPTOR
    oneofs = [oneof.fields for oneof in descriptor.oneofs if len(oneof.fields) > 1]
    for member in range(max((len(fields) for fields in oneofs), default=1)):
        message = kind()
        left_out = {
            field.name
            for fields in oneofs
            for place, field in enumerate(fields)
            if place != member % len(fields)
        }
        for field in descriptor.fields:
            if field.name not in left_out and field.full_name not in OUTPUT_ONLY:
                fill(message, field)
        yield message


def fill(message: Message, field: Any) -> None:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        value = field.message_type.fields_by_name["value"]
        getattr(message, field.name)["key"] = sample(value)
    elif field.is_repeated:
        getattr(message, field.name).append(sample(field))
    elif field.message_type is not None:
        getattr(message, field.name).CopyFrom(sample(field))
    else:
        setattr(message, field.name, sample(field))


def sample(field: Any) -> Any:
    if field.message_type is Duration.DESCRIPTOR:
        return Duration(seconds=7)
    if field.message_type is not None:
        return next(filled(message_factory.GetMessageClass(field.message_type)))
    if field.type == FieldDescriptor.TYPE_STRING:
        return field.name
    if field.type == FieldDescriptor.TYPE_BYTES:
        return field.name.encode()
    return True if field.type == FieldDescriptor.TYPE_BOOL else 1


def test_the_presence_of_a_group_is_what_its_options_ask_for() -> None:
    plain = spawn_request("true").spec
    assert [field.name for field, _ in plain.ListFields()] == ["shell"]
    assert spawn_request("true", foreground=True).spec.HasField("foreground")
    assert spawn_request("cat", input=True).spec.HasField("input")
    assert spawn_request("vi", terminal=True).spec.HasField("terminal")
    zero = spawn_request("true", reattach_window=0, grace=0).spec
    assert zero.foreground.HasField("reattach_window")
    assert zero.stop.HasField("grace")
    assert spawn_request(["true", Path("/x")]).spec.argv.args == ["true", "/x"]


def test_options_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="shell_program needs a script"):
        spawn_request(["true"], shell_program="/bin/sh")
    with pytest.raises(ValueError, match="foreground is False"):
        spawn_request("true", foreground=False, reattach_window=1)
    with pytest.raises(ValueError, match="terminal is False"):
        spawn_request("true", terminal=False, terminal_rows=10)
    with pytest.raises(TypeError, match=r"spawn\(\) got an unexpected keyword argument 'unknown'"):
        spawn_request("true", unknown=1)  # type: ignore[call-arg]


def test_the_blocking_client_has_every_method_with_its_arguments() -> None:
    faces = (
        (heeler.sync.Client, heeler.Client),
        (heeler.sync.Task, heeler.Task),
        (heeler.sync.Session, heeler.Session),
        (heeler.sync.Work, heeler.Work),
    )
    for face, inner in faces:
        # A stream in both directions needs an event loop.
        names = {name for name in dir(inner) if not name.startswith("_")} - {"raw", "work"}
        assert names <= set(dir(face))
        for name in names:
            if inspect.isfunction(method := getattr(inner, name)):
                parameters = inspect.signature(getattr(face, name)).parameters
                assert set(parameters) == set(inspect.signature(method).parameters), name


async def test_a_join_is_sent_with_its_arguments(
    recorded: Client, channel: RecordingChannel
) -> None:
    with pytest.raises(RequestSentError):
        await recorded.join("hosted-a", take_over=True)
    join = v1.WorkJoin(task_id="hosted-a", take_over=True)
    assert channel.requests.pop() == v1.WorkRequest(join=join)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        (Client.cancel, CancelOptions),
        (Client.run, RunControl),
        (Client.list, ListOptions),
        (Client.watch_events, WatchOptions),
    ],
)
def test_a_session_has_the_options_of_the_client(method: Any, options: type) -> None:
    parameters = inspect.signature(method).parameters
    shared = {name for name, found in parameters.items() if found.kind is found.KEYWORD_ONLY}
    assert options.__annotations__.keys() == shared - {"filter"}


def test_every_field_of_a_task_and_a_filter_has_the_name_of_its_option() -> None:
    for option, field in spawn_options.FIELDS.items():
        assert option_of(f"spec.{field}") == option
    options = {option_of(f"spec.{field}") for field in ("shell.script", "argv.args", "command")}
    assert options == {"command"}
    for option, field in filter_options.FIELDS.items():
        assert option_of(f"filter.{field}[1]") == f"filter.{option}[1]"
    assert option_of('spec.environment.variables["A.B"]') == 'env["A.B"]'
    assert option_of("slots") == "slots"


def test_every_enum_of_the_contract_has_a_python_enum_with_its_values() -> None:
    for name in enums.__all__:
        ours, theirs = getattr(heeler, name), getattr(v1, name).DESCRIPTOR
        assert {member.value for member in ours} == set(theirs.values_by_number)
        for member in ours:
            assert theirs.values_by_number[member.value].name.endswith(f"_{member.name}")


def test_a_number_of_a_newer_daemon_is_a_member_with_that_name() -> None:
    newer = v1.BackgroundTask.FromString(b"\x20\x63")
    state = heeler.TaskState(newer.state)
    assert isinstance(state, heeler.TaskState)
    assert (state, state.name) == (99, "99")
    assert state not in list(heeler.TaskState)
    assert v1.BackgroundTask(state=newer.state).state == state
    with pytest.raises(ValueError, match="RUNNING"):
        heeler.TaskState("RUNNING")  # type: ignore[arg-type]


def test_members_compare_with_the_fields_of_messages() -> None:
    task = v1.BackgroundTask(state=v1.TASK_STATE_RUNNING)
    assert task.state == heeler.TaskState.RUNNING
    assert task.state != heeler.TaskState.LOST
    assert task.state in {heeler.TaskState.RUNNING}
    assert heeler.TaskState(task.state) is heeler.TaskState.RUNNING


def test_every_exception_ends_in_error_and_is_a_heeler_error() -> None:
    for name in heeler.__all__:
        found = getattr(heeler, name)
        if isinstance(found, type) and issubclass(found, BaseException):
            assert issubclass(found, heeler.HeelerError)
            assert name.endswith("Error")
