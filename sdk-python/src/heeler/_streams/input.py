"""A task's input as a writer.

Each call has the offset of its data: one that is repeated after a break, also with the next daemon,
changes nothing. Calls are made one at a time, by a task that ends when everything is written.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING

from heeler._calls.backoff import Backoff
from heeler._calls.changes import Changes
from heeler._calls.retry import Retry, retrying
from heeler._errors.base import HeelerError, InputBrokenError
from heeler._options.time import to_duration
from heeler.v1 import WriteInputRequest, WriteInputResponse
from heeler.v1.errors import InputClosedError, TaskFinishedError

if TYPE_CHECKING:
    from heeler._calls.connection import Connection

_HIGH_WATER = 256 * 1024
"""Bytes that may wait before `drain` waits as well."""
_CALL = 1024 * 1024
"""The most bytes of one call."""
_WAIT = 60.0
"""Seconds for which one call waits for room. Then it is repeated."""


class InputWriter:
    """A writer to the stdin or the terminal of a task, in the manner of asyncio.StreamWriter.

    `write` takes the bytes, `drain` waits while too many are on their way, and `flush` until the
    task has all of them. `write_eof` and `close` close the input behind them. A task that does not
    read stops the writer; one whose input is closed, or that has ended, breaks it with an
    InputBrokenError, a BrokenPipeError.

    A writer that is dropped sends what was written, and leaves the input open. As a context manager
    it closes the input at the end of the block, unless the block raises an exception.
    """

    def __init__(
        self,
        connection: Connection,
        task_id: str,
        *,
        writer_id: str | None,
        take_over: bool,
        give_up_after: float | None,
    ) -> None:
        self._connection = connection
        self._task_id = task_id
        self._writer_id = str(uuid.uuid4()) if writer_id is None else writer_id
        self._take_over = take_over
        self._give_up_after = give_up_after
        self._buffer = bytearray()
        self._offset: int | None = None
        self._is_eof = False
        self._is_closed = False
        self._error: HeelerError | None = None
        self._changes = Changes()
        self._writing: asyncio.Task[None] | None = None

    @property
    def writer_id(self) -> str:
        """The id by which the daemon knows this writer."""
        return self._writer_id

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Takes bytes. They are on their way at once."""
        self._check()
        if self._is_eof:
            raise RuntimeError("cannot write after write_eof or close")
        self._buffer += data
        self._begin()

    def writelines(self, data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Takes several pieces, without anything between them."""
        self.write(b"".join(data))

    def can_write_eof(self) -> bool:
        """Returns True: every input can be closed."""
        return True

    def write_eof(self) -> None:
        """Closes the input behind what was written. A terminal gets its end-of-file character."""
        self._check()
        self._is_eof = True
        self._begin()

    def close(self) -> None:
        """Closes the input behind what was written. `wait_closed` waits until it is."""
        if self._error is None:
            self.write_eof()

    def is_closing(self) -> bool:
        """Returns True after `write_eof` or `close`, or if the writer is broken."""
        return self._is_eof or self._error is not None

    async def drain(self) -> None:
        """Waits while too many bytes are on their way."""
        await self._until_left(_HIGH_WATER)

    async def flush(self) -> None:
        """Waits until the task has been given everything."""
        await self._until_left(0)

    async def wait_closed(self) -> None:
        """Waits until the input is closed, after `close`."""
        await self._changes.until(lambda: self._is_closed or self._error is not None)
        self._check()

    async def __aenter__(self) -> InputWriter:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
            await self.wait_closed()

    async def _until_left(self, limit: int) -> None:
        await self._changes.until(lambda: len(self._buffer) <= limit or self._error is not None)
        self._check()

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def _begin(self) -> None:
        if self._writing is None or self._writing.done():
            self._writing = asyncio.get_running_loop().create_task(self._write_all())

    async def _write_all(self) -> None:
        backoff = Backoff(None)
        try:
            while self._buffer or (self._is_eof and not self._is_closed):
                begun = time.monotonic()
                if await self._write_some():
                    backoff.reset()
                else:
                    # The task is not started: it has no room.
                    lasted = time.monotonic() - begun
                    await asyncio.sleep(backoff.after_failure(lasted, connected=True) or 0.0)
        except (InputClosedError, TaskFinishedError) as error:
            self._error = InputBrokenError(self._task_id, error)
        except HeelerError as error:
            self._error = error
        finally:
            self._changes.announce()

    async def _write_some(self) -> bool:
        """Makes one call. Returns True if it had an effect."""
        if self._offset is None:
            self._offset = await self._claim()
        data = bytes(self._buffer[:_CALL])
        request = WriteInputRequest(
            task_id=self._task_id,
            writer_id=self._writer_id,
            offset=self._offset,
            data=data,
            close=self._is_eof and len(data) == len(self._buffer),
            wait=to_duration(_WAIT),
        )
        answer = await self._call(request)
        del self._buffer[: answer.taken_bytes]
        self._offset += answer.taken_bytes
        self._is_closed = request.close and answer.closed
        self._changes.announce()
        return answer.taken_bytes > 0 or self._is_closed

    async def _claim(self) -> int:
        """Returns the end of the input, which this writer has from then on, unless it is another's.

        What another one wrote between the answer and the first write would be taken for bytes of
        this writer.
        """
        question = WriteInputRequest(task_id=self._task_id)
        found = None if self._take_over else await self._call(question)
        if found is None or (not found.writer_id and self._writer_id):
            question.writer_id, question.take_over = self._writer_id, True
            found = await self._call(question)
        return found.offset

    async def _call(self, request: WriteInputRequest) -> WriteInputResponse:
        return await retrying(
            self._connection,
            lambda: self._connection.raw.WriteInput(request),
            Retry.IF_TRANSIENT,
            self._give_up_after,
        )
