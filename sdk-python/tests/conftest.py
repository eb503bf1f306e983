"""Fixtures of all tests: a daemon, and clients of it."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

import heeler
import heeler.sync
from harness.daemon import Daemon


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    """A daemon for this test alone."""
    daemon = Daemon()
    try:
        daemon.start()
        with daemon.connect() as client:
            # The call is repeated until the daemon serves.
            client.list_page()
        yield daemon
    finally:
        daemon.clean_up()


@pytest_asyncio.fixture
async def client(daemon: Daemon) -> AsyncIterator[heeler.Client]:
    """A client of the daemon."""
    async with heeler.connect(daemon.address) as client:
        yield client


@pytest.fixture
def sync_client(daemon: Daemon) -> Iterator[heeler.sync.Client]:
    """A blocking client of the daemon."""
    with daemon.connect() as client:
        yield client
