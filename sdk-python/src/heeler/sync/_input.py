"""The input of a task as a file."""

from __future__ import annotations

import io
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from heeler._streams.input import InputWriter
from heeler.sync import _thread

if TYPE_CHECKING:
    from typing_extensions import Buffer


class InputFile(io.RawIOBase):
    """The blocking face of heeler.InputWriter: a raw binary file.

    `write` waits while too many bytes are on their way, `flush` until the task has all of them, and
    `close` closes the input. A file that is dropped leaves the input open.
    """

    def __init__(self, inner: InputWriter, timeout: float | None) -> None:
        super().__init__()
        self._inner = inner
        self._timeout = timeout

    @property
    def writer_id(self) -> str:
        """The id by which the daemon knows this writer."""
        return self._inner.writer_id

    def writable(self) -> bool:
        """Returns True."""
        return True

    def write(self, data: Buffer, /) -> int:
        """Takes all bytes, and waits while too many are on their way."""
        taken = bytes(data)
        self._run(lambda: self._inner.write(taken))
        return len(taken)

    def flush(self) -> None:
        """Waits until the task has been given everything. Raises the error of a broken writer."""
        if not self.closed and not self._inner._is_eof:
            _thread.run(self._inner.flush(), self._timeout)

    def close(self) -> None:
        """Closes the input behind what was written, and waits until it is closed."""
        if self.closed:
            return
        try:
            self._run(self._inner.close)
            _thread.run(self._inner.wait_closed(), self._timeout)
        finally:
            super().close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()

    def __del__(self) -> None:
        # The base class would close the input, and wait for it on any thread.
        pass

    def _run(self, act: Callable[[], None]) -> None:
        async def acted() -> None:
            act()
            await self._inner.drain()

        _thread.run(acted(), self._timeout)
