"""The blocking client as a worker."""

import threading
from collections.abc import Callable

import pytest

import heeler
import heeler.sync
from harness.daemon import DEADLINE, Daemon
from heeler import EndReason, TaskState, WorkerStatus, WorkResult
from heeler.sync import Client, Work


def beside(work: Callable[[], object]) -> threading.Thread:
    """Runs something on another thread."""
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_the_value_of_a_function_is_the_result(sync_client: Client) -> None:
    """P2, P7."""
    threads = []

    def review(work: Work) -> str:
        threads.append(threading.current_thread())
        assert sync_client.session("s1").counts().hosted == 1
        work.report(intent="reads", percent=50, counts={"files": 3})
        work.tool_call("grep", "-rn TODO")
        work.tool_result("grep", "two lines")
        work.thought("old")
        work.text("Two.")
        work.note("done")
        work.heartbeat()
        return "two findings"

    task = sync_client.session("s1").host(review, name="review")
    assert threads == [threading.current_thread()]
    assert (task.state, task.result.text) == (TaskState.COMPLETED, "two findings")
    assert (task.progress.percent, task.progress.block_count) == (50, 5)


def test_a_cancel_sets_the_events_one_after_the_other(sync_client: Client) -> None:
    """C18, P2, P7."""
    threads = []

    def body(work: Work) -> WorkResult:
        cancelling = beside(lambda: work.task.cancel(soft_grace=0.3, reason="superseded"))
        threads.append(cancelling)
        assert work.stopping.wait(DEADLINE)
        is_soft = not work.cancelled.is_set()
        assert work.cancelled.wait(DEADLINE)
        request = work.cancel_request
        assert request is not None
        assert cancelling.is_alive()
        return WorkResult.cancelled(f"{is_soft} {request.reason}")

    task = sync_client.host(body, grace=DEADLINE)
    threads[0].join(DEADLINE)
    assert (task.state, task.result.text) == (TaskState.CANCELLED, "True superseded")
    assert not task.stop.forced


def test_the_function_of_a_task_that_ended_is_told(sync_client: Client) -> None:
    """P4."""

    def body(work: Work) -> str:
        work.task.cancel(force=True)
        assert work.cancelled.wait(DEADLINE)
        return "too late"

    task = sync_client.host(body)
    assert (task.state, task.stop.forced) == (TaskState.CANCELLED, True)
    assert not task.HasField("result")


def test_an_exception_or_an_interrupt_ends_the_task(sync_client: Client) -> None:
    """P2, F13."""

    def fail(error: BaseException) -> Callable[[Work], str]:
        def body(_: Work) -> str:
            raise error

        return body

    with pytest.raises(LookupError):
        sync_client.host(fail(LookupError("it broke")), session="s1")
    with pytest.raises(KeyboardInterrupt):
        sync_client.host(fail(KeyboardInterrupt()), session="s1")
    interrupted, failed = sync_client.session("s1").list(include_finished=True)
    assert (failed.end_reason, failed.result.text) == (EndReason.WORKER_FAILED, "it broke")
    assert interrupted.result.status == WorkerStatus.CANCELLED
    assert interrupted.stop.reason == "the worker was ended by KeyboardInterrupt"


def test_messages_and_progress_survive_a_kill(daemon: Daemon, sync_client: Client) -> None:
    """P3, P8, R1."""
    with sync_client.register() as work:
        got = []
        for number in range(1, 4):
            sync_client.send_message(work.task, f"m{number}", message_id=f"id{number}")
            work.note(str(number))
            daemon.restart()
        for message in work.messages():
            got.append(message.text)
            if len(got) == 3:
                break
        assert got == ["m1", "m2", "m3"]
        with pytest.raises(TimeoutError):
            work.within(0.05).message()
        task = work.finish(WorkResult.ok("done", b"data"))
    assert (task.result.data, task.progress.block_count) == (b"data", 3)


def test_workers_join_take_over_and_are_told(sync_client: Client) -> None:
    """P3."""
    assert sync_client.current() is None
    first = sync_client.register(lease=5)
    with pytest.raises(heeler.WorkerConnectedError):
        sync_client.join(first.task)
    second = sync_client.join(first.task, take_over=True)
    assert first.cancelled.wait(DEADLINE)
    with pytest.raises(heeler.WorkerReplacedError):
        first.finish()
    task = second.task
    del second
    assert task.within(DEADLINE).wait().state == TaskState.CANCELLED
