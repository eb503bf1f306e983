"""Blocking faces of asyncio objects, and the conversion of their methods.

A method takes one line: `cancel = blocking(asyncio_client.Client.cancel)`.
"""

from __future__ import annotations

import functools
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from heeler.sync import _thread

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")
I = TypeVar("I", covariant=True)  # noqa: E741


class Face(Generic[I]):
    """The blocking face of an asyncio object, with a deadline for each call."""

    def __init__(self, inner: I, timeout: float | None) -> None:
        self._inner = inner
        self._timeout = timeout

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return _thread.run(work, self._timeout)


class Items(Face[AsyncIterator[T]], Iterator[T]):
    """An iterator that blocks until the next item. A step that times out loses nothing."""

    def __next__(self) -> T:
        item = self._run(_step(self._inner))
        if item is _END:
            raise StopIteration
        return cast(T, item)

    def _until(self, deadline: float | None) -> Iterator[T]:
        """Yields the items, with one deadline on the monotonic clock for all steps together."""
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            item = _thread.run(_step(self._inner), left)
            if item is _END:
                return
            yield cast(T, item)

    def close(self) -> None:
        """Ends the iterator and the call behind it."""
        aclose = getattr(self._inner, "aclose", None)
        if aclose is not None:
            self._run(aclose())

    def __enter__(self: S) -> S:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_END = object()


async def _step(items: AsyncIterator[T]) -> T | object:
    return await anext(items, _END)


def blocking(
    method: Callable[Concatenate[I, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Face[I], P], R]:
    """Converts a coroutine method to one that blocks."""

    @functools.wraps(method)
    def call(self: Face[I], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._run(method(self._inner, *args, **kwargs))

    return call


def iterating(
    method: Callable[Concatenate[I, P], AsyncIterator[R]],
) -> Callable[Concatenate[Face[I], P], Items[R]]:
    """Converts a method that returns an asynchronous iterator."""

    @functools.wraps(method)
    def call(self: Face[I], /, *args: P.args, **kwargs: P.kwargs) -> Items[R]:
        return Items(method(self._inner, *args, **kwargs), self._timeout)

    return call


def wrapping(
    wrap: Callable[[R, float | None], S], method: Callable[Concatenate[I, P], R]
) -> Callable[Concatenate[Face[I], P], S]:
    """Converts a method that returns an asyncio object to one that returns its blocking face."""

    @functools.wraps(method)
    def call(self: Face[I], /, *args: P.args, **kwargs: P.kwargs) -> S:
        return wrap(method(self._inner, *args, **kwargs), self._timeout)

    return call
