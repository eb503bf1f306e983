"""Connecting: no daemon, a bad socket, an untrusted peer, the address in the environment."""

import asyncio
import os
import socket
from pathlib import Path

import pytest

import heeler
from harness.daemon import Daemon


async def test_the_error_for_no_daemon_has_the_command_that_starts_one(tmp_path: Path) -> None:
    with pytest.raises(heeler.DaemonNotRunningError) as error:
        await heeler.connect(f"unix:{tmp_path}/s.sock")
    start = f"heeler serve --listen unix:{tmp_path}/s.sock"
    assert (
        str(error.value) == f"no daemon answers at unix:{tmp_path}/s.sock: start one with `{start}`"
    )
    assert isinstance(error.value, ConnectionError)


async def test_a_socket_without_a_listener_means_no_daemon(daemon: Daemon) -> None:
    daemon.kill()
    assert daemon.socket.exists()
    with pytest.raises(heeler.DaemonNotRunningError):
        async with heeler.connect(daemon.address):
            pass


async def test_a_socket_that_cannot_be_opened_is_unreachable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(heeler.DaemonUnreachableError, match="Not a directory"):
        await heeler.connect(f"unix:{tmp_path}/file/s.sock")


async def test_a_daemon_of_another_user_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s.sock"))
        if os.geteuid() == 0:
            # The kernel reports the user at the time of listen().
            os.seteuid(65534)
        try:
            listener.listen()
        finally:
            os.seteuid(os.getuid())
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        with pytest.raises(heeler.DaemonUnreachableError, match="not user 12345"):
            await heeler.connect(f"unix:{tmp_path}/s.sock")


async def test_a_socket_path_that_is_too_long_is_refused() -> None:
    with pytest.raises(heeler.AddressError, match="at most 107 are allowed"):
        await heeler.connect("unix:/" + "x" * 200)


async def test_the_address_comes_from_the_environment(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEELER_ADDR", daemon.address)
    async with heeler.connect() as client:
        await client.list_page()
        assert str(client.address) == daemon.address
    monkeypatch.setenv("HEELER_ADDR", "nowhere")
    with pytest.raises(heeler.AddressError, match="nowhere"):
        await heeler.connect()


async def test_a_path_with_special_characters_works() -> None:
    daemon = Daemon("a b%20#?ä.sock")
    try:
        daemon.start()
        async with heeler.connect(daemon.address) as client:
            await client.list_page()
    finally:
        daemon.clean_up()


async def test_a_listener_that_never_answers_is_left_by_the_callers_timeout(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s.sock"))
        listener.listen()
        async with heeler.connect(f"unix:{tmp_path}/s.sock") as client:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.list_page(), 0.2)
