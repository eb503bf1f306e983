"""What the tests share: a daemon, and a client of it in each face."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

import heeler
import heeler.sync
from harness import Daemon


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    """A daemon of the test's own."""
    daemon = Daemon()
    try:
        daemon.start()
        with daemon.connect() as client:
            # Answered once it serves: before that it refuses, which is repeated.
            client.list_page()
        yield daemon
    finally:
        daemon.clean_up()


@pytest_asyncio.fixture
async def client(daemon: Daemon) -> AsyncIterator[heeler.Client]:
    """A client of the test's daemon."""
    async with heeler.connect(daemon.address) as client:
        yield client


@pytest.fixture
def sync_client(daemon: Daemon) -> Iterator[heeler.sync.Client]:
    """A client without an event loop."""
    with daemon.connect() as client:
        yield client
