"""A daemon over TCP: the token, and TLS with a private authority."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

import heeler
import heeler.sync
from harness.daemon import Daemon, eventually
from heeler._connection.address import Address
from heeler._connection.credentials import Credentials

MAKE_CERTIFICATES = Path(__file__).resolve().parents[3] / "tests/make-certificates.sh"


class TcpDaemon(Daemon):
    """A daemon that listens on TCP as well."""

    def __init__(self, *arguments: str) -> None:
        super().__init__("s.sock", "--listen", "tcp:127.0.0.1:0", *arguments)

    @property
    def token_file(self) -> Path:
        """The file with the token."""
        return self.directory / "state/token"

    def tcp(self) -> str:
        """Returns the TCP address from the log."""
        eventually(lambda: bool(self._logged()), "the daemon logs its address")
        return self._logged()[-1]

    def _logged(self) -> list[str]:
        lines = (self.directory / "log").read_text().splitlines()
        return [line.rpartition(" ")[2] for line in lines if "listening on t" in line]


@pytest.fixture
def tcp_daemon() -> Iterator[TcpDaemon]:
    daemon = TcpDaemon()
    try:
        daemon.start()
        yield daemon
    finally:
        daemon.clean_up()


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    if shutil.which("openssl") is None:
        assert os.environ.get("CI") != "true", "CI needs openssl"
        pytest.skip("openssl is not installed")
    subprocess.run([MAKE_CERTIFICATES, tmp_path], check=True)
    return tmp_path


async def test_a_worker_over_tcp_keeps_its_lease(tcp_daemon: TcpDaemon) -> None:
    """P3."""
    address, token = tcp_daemon.tcp(), tcp_daemon.token_file.read_text().strip()

    async with heeler.connect(address, token=token) as client:
        work = await client.register(lease=1)
        await work.note("over TCP")
        with pytest.raises(heeler.TaskStillRunningError):
            await work.task.wait(timeout=1.5)
        assert (await work.finish("done")).progress.block_count == 1
        async with heeler.connect(address, token="wrong") as other:
            with pytest.raises(heeler.TokenRefusedError):
                await other.register()


async def test_calls_with_the_token_are_served(tcp_daemon: TcpDaemon) -> None:
    token = tcp_daemon.token_file.read_text().strip()
    for client in (
        await heeler.connect(tcp_daemon.tcp(), token=token),
        await heeler.connect(tcp_daemon.tcp(), token_file=tcp_daemon.token_file),
    ):
        async with client:
            task = await client.spawn("exit 3")
            assert heeler.outcome(await task.wait()) == heeler.Exited(3)
            async with client.watch_events(after=0) as watch:
                first = await anext(aiter(watch))
            assert isinstance(first, heeler.Bookmark)


async def test_a_wrong_or_missing_token_is_refused(tcp_daemon: TcpDaemon) -> None:
    for token in ("x" * 64, None):
        async with heeler.connect(tcp_daemon.tcp(), token=token) as client:
            with pytest.raises(heeler.TokenRefusedError) as refused:
                await client.list_page()
            assert refused.value.code is grpc.StatusCode.UNAUTHENTICATED
            with pytest.raises(heeler.TokenRefusedError):
                async for _ in client.watch_events():
                    pass


async def test_the_token_file_comes_from_the_environment(
    tcp_daemon: TcpDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEELER_ADDR", tcp_daemon.tcp())
    for name, value in (
        ("HEELER_TOKEN_FILE", tcp_daemon.token_file),
        ("HEELER_STATE_DIR", tcp_daemon.token_file.parent),
    ):
        with monkeypatch.context() as patch:
            patch.setenv(name, str(value))
            async with heeler.connect() as client:
                await client.list_page()


async def test_the_token_of_a_task_is_shown_to_its_own_daemon_and_to_no_other_machine(
    tcp_daemon: TcpDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K4."""
    address = tcp_daemon.tcp()
    monkeypatch.setenv("HEELER_TOKEN", "of-a-task")
    # With the rights of the user, a task could get around its own.
    monkeypatch.setenv("HEELER_STATE_DIR", str(tcp_daemon.token_file.parent))
    for own in (address, "", "unix:/nowhere", "nonsense"):
        monkeypatch.setenv("HEELER_ADDR", own)
        async with heeler.connect(address) as client:
            with pytest.raises(heeler.TokenRefusedError):
                await client.list_page()
    remote = Address.parse("tls:build.example.com:7117")
    assert Credentials().token_for(remote) is None
    monkeypatch.setenv("HEELER_ADDR", "tls:build.example.com:7117")
    assert Credentials().token_for(remote) == "of-a-task"


def test_the_blocking_client_takes_a_token(tcp_daemon: TcpDaemon) -> None:
    with heeler.sync.connect(tcp_daemon.tcp(), token_file=tcp_daemon.token_file) as client:
        client.list_page()


@pytest.mark.parametrize("token", ["", "a b", "a\nb", "\u00e4"])
async def test_a_token_that_cannot_be_sent_is_refused(token: str) -> None:
    with pytest.raises(heeler.CredentialsError, match="the token is empty or has characters"):
        await heeler.connect("tcp:127.0.0.1:1", token=token)


async def test_errors_name_the_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(heeler.CredentialsError, match="/nowhere/token"):
        await heeler.connect("tcp:127.0.0.1:1", token_file="/nowhere/token")
    with pytest.raises(heeler.CredentialsError, match="/nowhere/ca"):
        await heeler.connect("tls:127.0.0.1:1", token="x", tls_ca="/nowhere/ca")
    (tmp_path / "ca.pem").write_text("nothing")
    with pytest.raises(heeler.CredentialsError, match=r"ca\.pem"):
        await heeler.connect("tls:127.0.0.1:1", token="x", tls_ca=tmp_path / "ca.pem")


async def test_a_port_without_a_listener_means_no_daemon() -> None:
    with pytest.raises(heeler.DaemonNotRunningError, match="heeler serve --listen tcp:127"):
        await heeler.connect("tcp:127.0.0.1:1", token="x")


async def test_a_private_authority_is_trusted_if_it_is_given(certificates: Path) -> None:
    files = (
        "--tls-cert",
        str(certificates / "cert.pem"),
        "--tls-key",
        str(certificates / "key.pem"),
    )
    daemon = TcpDaemon(*files)
    try:
        daemon.start()
        address = daemon.tcp()
        assert address.startswith("tls:")
        named = address.replace("127.0.0.1", "localhost")
        for host in (address, named):
            async with heeler.connect(
                host, token_file=daemon.token_file, tls_ca=certificates / "ca.pem"
            ) as client:
                await client.list_page()
        # Without `tls_ca` only the authorities of the system are trusted.
        async with heeler.connect(address, token_file=daemon.token_file) as client:
            with pytest.raises(heeler.DaemonUnreachableError, match=r"(?i)certificate|handshake"):
                await client.list_page()
    finally:
        daemon.clean_up()
