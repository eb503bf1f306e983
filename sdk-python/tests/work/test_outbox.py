"""The messages of a worker until the daemon has acknowledged them."""

from heeler._work.outbox import Outbox
from heeler.v1 import ProgressUpdate, WorkerResult


def sent(outbox: Outbox) -> list[str]:
    """Takes all messages, as their kind and number."""
    found = []
    while (request := outbox.next()) is not None:
        number = request.receipt.number or request.sequence
        found.append(f"{request.WhichOneof('item')} {number}")
    return found


def test_what_is_not_acknowledged_is_sent_again_in_order() -> None:
    """P8."""
    outbox = Outbox()
    for _ in range(3):
        outbox.report(ProgressUpdate())
    assert sent(outbox) == ["progress 1", "progress 2", "progress 3"]
    outbox.deliver(WorkerResult())
    outbox.receive(7)
    assert sent(outbox) == ["receipt 7", "result 4"]
    outbox.acknowledge(1)
    outbox.begin_stream(2)
    assert sent(outbox) == ["receipt 7", "progress 3", "result 4"]
    assert (outbox.has_result, outbox.is_delivered) == (True, False)
    outbox.acknowledge(4)
    assert outbox.is_delivered
    outbox.begin_stream(4)
    assert sent(outbox) == ["receipt 7"]


def test_new_messages_follow_those_that_were_sent() -> None:
    outbox = Outbox()
    outbox.report(ProgressUpdate())
    assert sent(outbox) == ["progress 1"]
    outbox.report(ProgressUpdate())
    outbox.acknowledge(1)
    outbox.report(ProgressUpdate())
    assert sent(outbox) == ["progress 2", "progress 3"]


def test_reports_without_an_acknowledgement_are_bounded() -> None:
    outbox = Outbox()
    while outbox.has_room:
        outbox.report(ProgressUpdate())
    assert len(sent(outbox)) == 256
    outbox.acknowledge(1)
    assert outbox.has_room


def test_signs_of_activity_are_merged_and_not_kept_for_another_stream() -> None:
    outbox = Outbox()
    outbox.beat()
    outbox.beat()
    assert sent(outbox) == ["heartbeat 0"]
    outbox.beat()
    outbox.begin_stream(0)
    assert sent(outbox) == []
