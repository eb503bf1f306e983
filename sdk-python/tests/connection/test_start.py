"""Starting the daemon: as the command does, with clear errors. Each test has a home of its own."""

import asyncio
import os
import shutil
import socket
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import heeler
import heeler.sync
from harness.daemon import DEADLINE, Daemon, alive, binary, eventually


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directories of a user whose daemon is not running. A daemon that was started is ended."""
    # Not pytest's directory: the path of a socket must be short.
    home = Path(tempfile.mkdtemp(prefix="heeler-py-"))
    program = str(binary())
    for name in [name for name in os.environ if name.startswith("HEELER_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home / "run"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("HEELER_BINARY", program)
    (home / "run").mkdir(mode=0o700)
    try:
        yield home
    finally:
        _end_daemon(home)
        shutil.rmtree(home)


def _end_daemon(home: Path) -> None:
    with socket.socket(socket.AF_UNIX) as probe:
        if probe.connect_ex(str(home / "run/heeler/heeler.sock")) != 0:
            return
        (pid,) = struct.unpack("i8x", probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    with heeler.sync.connect(f"unix:{home}/run/heeler/heeler.sock") as client:
        client.within(DEADLINE).shutdown(tasks="stop", grace=0)
    eventually(lambda: not alive(pid), "the daemon has exited")


async def test_a_daemon_is_started_once_and_outlives_the_client(home: Path) -> None:
    """U5."""
    async with heeler.connect_or_start() as client:
        assert str(client.address) == f"unix:{home}/run/heeler/heeler.sock"
        started = (await client.list_page()).server.start_time
        task = await client.spawn("sleep 100")
    async with heeler.connect_or_start() as client:
        assert (await client.list_page()).server.start_time == started, "the same daemon"
        assert (await client.task(task).get()).state == heeler.TaskState.RUNNING
    async with heeler.connect() as client:
        await client.task(task).cancel(force=True)


async def test_clients_that_start_at_the_same_time_share_one_daemon(home: Path) -> None:
    """U5."""
    connecting = [asyncio.ensure_future(_connect_or_start()) for _ in range(4)]
    clients = await asyncio.gather(*connecting)
    servers = {(await client.list_page()).server.start_time.ToNanoseconds() for client in clients}
    assert len(servers) == 1
    for client in clients:
        await client.close()


async def _connect_or_start() -> heeler.Client:
    return await heeler.connect_or_start()


def test_the_blocking_client_starts_the_program_that_it_is_given(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """U5."""
    program = os.environ["HEELER_BINARY"]
    monkeypatch.setenv("HEELER_BINARY", "/no/such/heeler")
    with heeler.sync.connect_or_start(program=program) as client:
        assert heeler.outcome(client.spawn("exit 3").wait()) == heeler.Exited(3)


def test_the_program_is_found_on_the_path(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """U5."""
    (home / "bin").mkdir()
    (home / "bin/heeler").symlink_to(os.environ["HEELER_BINARY"])
    monkeypatch.delenv("HEELER_BINARY")
    monkeypatch.setenv("PATH", f"{home}/bin:{os.environ['PATH']}")
    with heeler.sync.connect_or_start() as client:
        client.list_page()


async def test_a_missing_program_is_named_with_the_way_to_install_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """U5."""
    monkeypatch.setenv("HEELER_BINARY", "/no/such/heeler")
    with pytest.raises(heeler.NotInstalledError) as missing:
        await heeler.connect_or_start()
    assert str(missing.value) == (
        "cannot start the daemon: cannot execute `/no/such/heeler` (from HEELER_BINARY): "
        "No such file or directory; install it with `cargo install --path cli` in a checkout of "
        "Heeler, or set HEELER_BINARY to its path"
    )
    monkeypatch.delenv("HEELER_BINARY")
    monkeypatch.setenv("PATH", str(home))
    with pytest.raises(heeler.NotInstalledError, match=r"`heeler` \(from PATH\)"):
        await heeler.connect_or_start()
    with pytest.raises(heeler.NotInstalledError, match=r"\(from the option program\): Permission"):
        await heeler.connect_or_start(program=home)
    assert issubclass(heeler.NotInstalledError, heeler.DaemonStartError)


async def test_a_start_that_fails_says_why(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """U5."""
    (home / "state").write_text("in the way of the state directory")
    with pytest.raises(heeler.DaemonStartError, match="start` failed: ") as failed:
        await heeler.connect_or_start()
    assert str(home / "state") in str(failed.value)


async def test_with_an_address_no_daemon_is_started(
    home: Path, monkeypatch: pytest.MonkeyPatch, daemon: Daemon
) -> None:
    """U5."""
    nowhere = f"unix:{home}/s.sock"
    with pytest.raises(heeler.DaemonNotRunningError):
        await heeler.connect_or_start(nowhere)
    monkeypatch.setenv("HEELER_ADDR", nowhere)
    with pytest.raises(heeler.DaemonNotRunningError):
        await heeler.connect_or_start()
    async with heeler.connect_or_start(daemon.address) as client:
        await client.list_page()
    assert not (home / "run/heeler").exists()
