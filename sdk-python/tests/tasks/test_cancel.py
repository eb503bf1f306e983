"""Cancel ends the whole tree and proves it."""

import heeler
from harness.daemon import alive
from heeler import CancelOutcome, Client, Filter, ProofMethod, TaskState

ESCAPEES = """
trap '' TERM
sleep 100 & echo $!
setsid sleep 100 & echo $!
(setsid env -i sleep 100 >/dev/null 2>&1 & echo $!)
echo ready
wait
"""


async def pids_of(task: heeler.Task) -> list[int]:
    pids = []
    async for line in task.lines():
        if line.text == "ready":
            break
        pids.append(int(line.text))
    return pids


async def test_cancel_ends_the_whole_tree_and_has_the_proof(client: Client) -> None:
    """C4, C14."""
    task = await client.spawn(ESCAPEES, grace=0.1)
    pids = await pids_of(task)
    assert len(pids) == 3
    assert all(map(alive, pids))
    result = await task.cancel(reason="superseded", actor="a test")
    assert not any(map(alive, pids))
    assert result.outcome == CancelOutcome.REQUESTED
    assert result.task.state == TaskState.CANCELLED
    proof = result.task.stop.proof
    assert proof.WhichOneof("result") == "proven"
    assert proof.proven in (ProofMethod.CGROUP_EMPTY, ProofMethod.NO_CHILDREN)
    assert result.task.stop.reason == "superseded"
    assert result.task.stop.actor.name == "a test"


async def test_cancel_of_a_finished_task_is_no_error(client: Client) -> None:
    """C9."""
    task = await client.spawn("true")
    await task.wait()
    result = await task.cancel()
    assert result.outcome == CancelOutcome.ALREADY_FINISHED
    assert result.task.state == TaskState.COMPLETED


async def test_force_kills_at_once_and_a_given_signal_is_sent(client: Client) -> None:
    """C16."""
    stubborn = await client.spawn("trap '' TERM INT; echo ready; sleep 100")
    await anext(stubborn.lines())
    assert [s.name for s in (await stubborn.cancel(force=True)).task.stop.signals] == ["SIGKILL"]
    polite = await client.spawn("trap 'exit 7' INT; echo ready; while :; do sleep 0.01; done")
    await anext(polite.lines())
    result = await polite.cancel(signal="SIGINT", grace=30)
    assert heeler.outcome(result.task) == heeler.Exited(7)


async def test_cancel_without_wait_returns_before_the_end(client: Client) -> None:
    task = await client.spawn("trap '' TERM; echo ready; sleep 100", grace=60)
    await anext(task.lines())
    first = await task.cancel(wait=False)
    assert (first.outcome, first.task.state) == (CancelOutcome.REQUESTED, TaskState.STOPPING)
    again = await task.cancel(force=True)
    assert again.outcome == CancelOutcome.ALREADY_STOPPING
    assert again.task.state == TaskState.CANCELLED


async def test_cancel_selects_by_filter(client: Client) -> None:
    """C10."""
    here = [await client.spawn("sleep 100", session="s") for _ in range(2)]
    red = await client.spawn("sleep 100", labels={"team": "red"})
    other = await client.spawn("sleep 100")
    answer = await client.cancel(filter=Filter(session="s"))
    assert {result.task.id for result in answer} == {task.id for task in here}
    answer = await client.cancel(filter=Filter(labels={"team": "red"}))
    assert [result.task.id for result in answer] == [red.id]
    assert not await client.cancel(filter=Filter(session="none"))
    assert (await other.get()).state == TaskState.RUNNING


async def test_cascade_also_cancels_spawned_tasks(client: Client) -> None:
    """C12."""
    parent = await client.spawn("sleep 100")
    child = await client.spawn("sleep 100", parent=parent)
    assert (await parent.cancel(cascade=True)).task.state == TaskState.CANCELLED
    assert (await child.get()).state == TaskState.CANCELLED


async def test_a_task_does_not_outlive_its_block(client: Client) -> None:
    async with await client.spawn("sleep 100") as task:
        pid = (await task.get()).leader.pid
        assert alive(pid)
    assert not alive(pid)
    assert (await task.get()).state == TaskState.CANCELLED
