"""Parsing addresses, and the default address."""

import os
from pathlib import Path

import pytest

from heeler import Address, AddressError, TcpAddress, UnixAddress
from heeler._connection.paths import default_socket


@pytest.mark.parametrize("text", ["unix:/run/x.sock", "unix:///run/x.sock"])
def test_both_forms_of_an_absolute_path_are_accepted(text: str) -> None:
    address = Address.parse(text)
    assert address == UnixAddress(Path("/run/x.sock"))
    assert str(address) == "unix:/run/x.sock"


@pytest.mark.parametrize("text", ["unix:run/x.sock", "unix:", "/run/x.sock", "http://x", ""])
def test_other_addresses_are_refused(text: str) -> None:
    with pytest.raises(AddressError, match="write unix:/absolute/path"):
        Address.parse(text)


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("tcp:127.0.0.1:7117", "127.0.0.1"),
        ("tcp:[::1]:7117", "::1"),
        ("tcp:localhost:7117", "localhost"),
        ("tls:build.example.com:7117", "build.example.com"),
        ("tls:10.0.0.1:7117", "10.0.0.1"),
    ],
)
def test_hosts_are_accepted_by_name_and_by_number(text: str, host: str) -> None:
    address = Address.parse(text)
    assert isinstance(address, TcpAddress)
    assert (address.host, address.port, str(address)) == (host, 7117, text)


@pytest.mark.parametrize("scheme", ["tcp", "tls"])
@pytest.mark.parametrize(
    "rest",
    ["", ":", "host", "host:", ":1", "localhost:0", "localhost:65536", "//h:1", "[h]:1", "a b:1"],
)
def test_a_bad_host_or_port_is_refused(scheme: str, rest: str) -> None:
    with pytest.raises(AddressError, match="has no valid host and port"):
        Address.parse(f"{scheme}:{rest}")


@pytest.mark.parametrize("host", ["10.0.0.1", "example.com", "0.0.0.0", "[fe80::1]"])
def test_a_remote_host_without_tls_is_refused(host: str) -> None:
    with pytest.raises(AddressError, match="write tls:HOST:PORT"):
        Address.parse(f"tcp:{host}:7117")


def test_a_path_of_107_bytes_is_accepted_and_a_longer_one_refused() -> None:
    fits = "/" + "x" * 106
    UnixAddress(Path(fits))
    with pytest.raises(AddressError, match="has 108 bytes: at most 107 are allowed"):
        UnixAddress(Path(fits + "x"))


def test_a_path_with_a_nul_is_refused() -> None:
    with pytest.raises(AddressError, match="contains a NUL"):
        UnixAddress(Path("/a\0b"))


def test_the_environment_variable_overrides_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/here")
    monkeypatch.setenv("HEELER_ADDR", "unix:/elsewhere/x.sock")
    assert str(Address.default()) == "unix:/elsewhere/x.sock"
    monkeypatch.setenv("HEELER_ADDR", "")
    assert str(Address.default()) == "unix:/run/here/heeler/heeler.sock"


def test_the_start_command_has_an_address_unless_it_is_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/here")
    assert Address.parse("unix:/run/here/heeler/heeler.sock").start_command() == "heeler serve"
    elsewhere = Address.parse("unix:/nowhere/x.sock").start_command()
    assert elsewhere == "heeler serve --listen unix:/nowhere/x.sock"


class Directories:
    """Stand-ins for the directories that may have the socket."""

    def __init__(self, root: Path) -> None:
        self.run, self.tmp = root / "run", root / "tmp"
        self.tmp.mkdir()

    def socket(self) -> Path:
        """Returns the default socket below these directories."""
        return default_socket(self.run, self.tmp)


@pytest.fixture
def directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Directories:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    return Directories(tmp_path)


def test_a_relative_runtime_directory_is_ignored(
    directories: Directories, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "here")
    assert directories.socket() == directories.tmp / f"heeler-{os.geteuid()}/heeler.sock"


def test_the_users_run_directory_comes_second(directories: Directories) -> None:
    run = directories.run / str(os.geteuid())
    run.mkdir(parents=True)
    assert directories.socket() == run / "heeler/heeler.sock"


def test_a_fallback_directory_that_others_can_enter_is_refused(directories: Directories) -> None:
    directory = directories.tmp / f"heeler-{os.geteuid()}"
    directory.mkdir()
    directory.chmod(0o755)
    with pytest.raises(AddressError, match="remove it, or set XDG_RUNTIME_DIR"):
        directories.socket()
    directory.chmod(0o700)
    assert directories.socket() == directory / "heeler.sock"


def test_a_fallback_directory_that_is_a_link_is_refused(directories: Directories) -> None:
    real = directories.tmp / "real"
    real.mkdir(mode=0o700)
    (directories.tmp / f"heeler-{os.geteuid()}").symlink_to(real)
    with pytest.raises(AddressError):
        directories.socket()
