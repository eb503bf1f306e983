"""Progress and results: cut or refused before they are sent."""

import pytest

from heeler import Block, BlockKind, WorkerStatus, WorkResult
from heeler._work.progress import block, updates
from heeler._work.result import of_failure, to_result


def test_a_long_text_is_cut_at_a_character_before_it_is_sent() -> None:
    """P1."""
    found = block(BlockKind.NOTE, "é" * 4096, "ü" * 300)
    assert (len(found.text.encode()), found.text_bytes) == (4096, 8192)
    assert len(found.name.encode()) == 256
    odd = block(BlockKind.NOTE, "x" + "é" * 4096)
    assert len(odd.text.encode()) == 4095
    assert block(BlockKind.TEXT, "a\ud800b\0").text == "a?b\0"


def test_many_blocks_are_several_messages_in_order() -> None:
    """P1."""
    blocks = [Block(text=str(number)) for number in range(250)]
    sent = updates(blocks, "reads", 40, {"files": 3})
    assert [len(update.blocks) for update in sent] == [100, 100, 50]
    assert [one.text for update in sent for one in update.blocks] == list(map(str, range(250)))
    assert [update.HasField("intent") for update in sent] == [True, False, False]
    (only,) = updates([], None, None, None)
    assert only.ByteSize() == 0


def test_blocks_of_the_contract_are_cut_as_well() -> None:
    """P1."""
    long = Block(kind=BlockKind.TEXT, text="x" * 5000)
    known = Block(kind=BlockKind.TEXT, text="x" * 4096, text_bytes=9000)
    (update,) = updates([long, known], "i" * 2000, None, None)
    assert [(len(one.text), one.text_bytes) for one in update.blocks] == [
        (4096, 5000),
        (4096, 9000),
    ]
    assert len(update.intent) == 1024


def test_what_the_daemon_would_refuse_is_refused_here() -> None:
    for percent in (-1, 101):
        with pytest.raises(ValueError, match=f"percent must be from 0 to 100, not {percent}"):
            updates([], None, percent, None)
    with pytest.raises(ValueError, match="counts has 33 counters"):
        updates([], None, None, {str(number): number for number in range(33)})
    with pytest.raises(ValueError, match="more than 64 bytes"):
        updates([], None, None, {"é" * 33: 1})
    for count in (-1, 1 << 64):
        with pytest.raises(ValueError, match="out of range"):
            updates([], None, None, {"n": count})
    with pytest.raises(ValueError, match="99 is not the kind of a block"):
        updates([Block.FromString(b"\x10\x63")], None, None, None)


def test_a_result_that_is_too_long_is_refused() -> None:
    WorkResult.ok("x" * 65536, b"x" * 65536)
    with pytest.raises(ValueError, match="the text of a result has 65537 bytes"):
        WorkResult.ok("x" * 65537)
    with pytest.raises(ValueError, match="the data of a result has 65537 bytes"):
        WorkResult.failed(data=b"x" * 65537)


def test_a_returned_value_is_a_result() -> None:
    assert to_result(None) == WorkResult(WorkerStatus.OK)
    assert to_result("done") == WorkResult.ok("done")
    assert to_result(WorkResult.cancelled("half")).status == WorkerStatus.CANCELLED
    with pytest.raises(TypeError, match="not int"):
        to_result(3)  # type: ignore[arg-type]


def test_the_message_of_an_exception_is_cut() -> None:
    assert of_failure(LookupError("no room")).text == "no room"
    assert of_failure(LookupError()).text == "LookupError"
    assert len(of_failure(ValueError("é" * 40000)).text.encode()) == 65536
