"""Bad input: the exception names the problem, and nothing was changed."""

from collections.abc import Awaitable, Callable

import grpc
import pytest

import heeler
from harness.daemon import Daemon
from heeler import Client


async def test_an_unknown_id_is_not_found(client: Client) -> None:
    """C9."""
    task = client.task("shell-aaaaaaaaaa")
    calls = [task.wait(), task.cancel(), task.inspect(), task.remove(), anext(task.output())]
    for call in calls:
        with pytest.raises(heeler.TaskNotFoundError) as refused:
            await call
        assert refused.value.metadata == {"task_id": "shell-aaaaaaaaaa"}
        assert refused.value.code is grpc.StatusCode.NOT_FOUND


async def test_a_bad_field_is_named_and_nothing_is_started(client: Client) -> None:
    """S2."""
    with pytest.raises(heeler.InvalidFieldError) as refused:
        await client.spawn("true", timeout=-1)
    assert [bad.field for bad in refused.value.fields] == ["spec.timeout"]
    for call in (client.spawn([]), client.cancel(), client.wait(), client.remove()):
        with pytest.raises(heeler.InvalidFieldError) as refused:
            await call
        assert refused.value.fields[0].field
    assert [task async for task in client.list(include_finished=True)] == []


async def test_the_error_has_the_name_of_the_option_beside_that_of_the_field(
    client: Client,
) -> None:
    """S2."""
    with pytest.raises(heeler.InvalidFieldError) as refused:
        await client.spawn("true", grace=-1)
    (bad,) = refused.value.fields
    assert (bad.option, bad.field) == ("grace", "spec.stop.grace")
    assert str(refused.value) == "grace (spec.stop.grace) is negative or malformed"
    with pytest.raises(heeler.InvalidFieldError, match=r"^cwd \(spec\.working_directory\) is not"):
        await client.spawn("true", cwd="relative")
    with pytest.raises(heeler.InvalidFieldError, match=r"^command \(spec\.argv\.args\) is empty"):
        await client.spawn([])
    with pytest.raises(heeler.InvalidFieldError, match=r'^env\["A="\] \(spec\.environment\.var'):
        await client.spawn("true", env={"A=": "1"})
    with pytest.raises(heeler.InvalidFieldError, match=r"^grace \(graceful\.grace\) is negative"):
        await client.cancel("shell-aaaaaaaaaa", grace=-1)
    with pytest.raises(heeler.InvalidFieldError, match=r"^filter\.directory is not an absolute"):
        await client.cancel(filter=heeler.Filter(directory="relative"))


async def test_an_unknown_option_names_the_function_that_was_called(client: Client) -> None:
    task = client.task("shell-a")
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "spawn": lambda: client.spawn("true", timeot=1),  # type: ignore[call-arg]
        "run": lambda: client.run("true", timeot=1),  # type: ignore[call-arg]
        "Session.spawn": lambda: client.session("s").spawn("true", timeot=1),  # type: ignore[call-arg]
        "Session.run": lambda: client.session("s").run("true", timeot=1),  # type: ignore[call-arg]
    }
    for name, call in calls.items():
        expected = f"{name}() got an unexpected keyword argument 'timeot'; did you mean 'timeout'?"
        with pytest.raises(TypeError) as unknown:
            await call()
        assert str(unknown.value) == expected
    with pytest.raises(TypeError, match=r"^Task\.cancel\(\) got .* 'forced'; did you mean 'force'"):
        await task.cancel(forced=True)  # type: ignore[call-arg]
    with pytest.raises(
        TypeError, match=r"^run\(\) got an unexpected keyword argument 'foreground'"
    ):
        await client.run("true", foreground=False)  # type: ignore[call-arg]


async def test_an_unknown_word_names_the_words_that_there_are(client: Client) -> None:
    with pytest.raises(ValueError, match=r"^kind must be one of shell, agent, hosted, not 'agnt'$"):
        await client.spawn("true", kind="agnt")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^states must be one of queued, starting, .*, not 'up'$"):
        await client.list_page(heeler.Filter(states=["up"]))  # type: ignore[list-item]
    with pytest.raises(
        ValueError, match=r"^until must be one of finished, out_of_foreground, matched, ready, not"
    ):
        await client.wait("shell-a", until="done")  # type: ignore[arg-type]


async def test_arguments_that_exclude_each_other_are_refused_by_the_client(client: Client) -> None:
    with pytest.raises(ValueError, match="only one of force and grace"):
        await client.cancel("shell-a", force=True, grace=1)
    with pytest.raises(ValueError, match="only one of offset and tail_bytes"):
        await client.read_output("shell-a", offset=0, tail_bytes=1)
    with pytest.raises(ValueError, match="shell_program"):
        await client.spawn(["true"], shell_program="/bin/sh")


async def test_a_command_that_cannot_start_has_its_own_error(client: Client) -> None:
    """S3, S4."""
    with pytest.raises(heeler.WorkingDirectoryUnusableError) as refused:
        await client.spawn("true", cwd="/nowhere")
    assert refused.value.metadata["path"] == "/nowhere"
    with pytest.raises(heeler.ProgramUnusableError) as unusable:
        await client.spawn(["/nowhere/program"])
    assert unusable.value.metadata["program"] == "/nowhere/program"
    with pytest.raises(heeler.ParentNotLiveError):
        await client.spawn("true", parent="shell-aaaaaaaaaa")


async def test_the_limit_on_tasks_is_in_the_error() -> None:
    """S11."""
    daemon = Daemon("s.sock", "--max-tasks", "1")
    try:
        daemon.start()
        async with heeler.connect(daemon.address) as client:
            await client.spawn("sleep 100")
            with pytest.raises(heeler.TaskLimitReachedError) as refused:
                await client.spawn("sleep 100")
            assert refused.value.metadata == {"running": "1", "max": "1"}
    finally:
        daemon.clean_up()


async def test_a_request_that_is_too_large_is_refused(
    client: Client,
) -> None:
    """N3."""
    labels = {str(n): "x" * 100_000 for n in range(60)}
    with pytest.raises(heeler.RefusedError) as refused:
        await client.spawn("true", labels=labels)
    assert isinstance(refused.value, heeler.RequestTooLargeError)
    assert int(refused.value.metadata["max"]) > 0
    assert refused.value.code is grpc.StatusCode.OUT_OF_RANGE
    assert [task async for task in client.list(include_finished=True)] == []
