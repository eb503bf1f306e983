"""A real daemon in its own directory, which a test can kill and start again."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from heeler import ShutdownTasks
from heeler.sync import Client, connect

DEADLINE = 30.0
"""Seconds for an operation that takes milliseconds on an idle machine."""


def binary() -> Path:
    """Returns the program of the daemon: `HEELER_BINARY`, else the debug build."""
    built = Path(__file__).resolve().parents[3] / "target/debug/heeler"
    named = os.environ.get("HEELER_BINARY")
    path = Path(named) if named else built
    if not os.access(path, os.X_OK):
        raise FileNotFoundError(
            f"no daemon at {path}: build it with `cargo build -p heeler`, or set HEELER_BINARY"
        )
    return path.resolve()


def eventually(condition: Callable[[], bool], what: str) -> None:
    """Waits until the condition holds."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, f"not within {DEADLINE} s: {what}"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    """Returns True if the process exists and is not a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


class Daemon:
    """A daemon with its socket and its state directory."""

    def __init__(self, name: str = "s.sock", *arguments: str) -> None:
        # Not pytest's directory: the path of a socket must be short.
        self.directory = Path(tempfile.mkdtemp(prefix="heeler-py-"))
        self.socket = self.directory / name
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """The address of the socket."""
        return f"unix:{self.socket}"

    def start(self) -> None:
        """Starts it and waits until it can be connected to."""
        state = self.directory / "state"
        command: list[str | Path] = [
            binary(),
            "serve",
            # Keeps all output in the directory of the test.
            "--memory-output",
            "0",
            "--state-dir",
            state,
            "--listen",
            self.address,
        ]
        base = {key: value for key, value in os.environ.items() if not key.startswith("HEELER_")}
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *self._arguments], stdout=log, stderr=log, env=base
            )
        eventually(self._listens, "the daemon listens")

    def kill(self, by: signal.Signals = signal.SIGKILL) -> None:
        """Ends the daemon with SIGKILL or another signal."""
        assert self._process is not None
        self._process.send_signal(by)
        self._process.wait(DEADLINE)
        # The socket accepts connections for a moment longer, perhaps in a child before its exec.
        eventually(lambda: not self._connects(), "the socket is closed")

    def restart(self, by: signal.Signals = signal.SIGKILL) -> None:
        """Kills it and starts it again on the same state."""
        self.kill(by)
        self.start()

    def exited(self) -> int:
        """Waits until it has exited and returns the exit code."""
        assert self._process is not None
        return self._process.wait(DEADLINE)

    def connect(self) -> Client:
        """Returns a client."""
        return connect(self.address)

    def clean_up(self) -> None:
        """Ends the daemon and every task, and removes the directory."""
        try:
            if self._process is not None:
                self._stop_everything(self._process)
        finally:
            shutil.rmtree(self.directory)

    def _stop_everything(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is not None:
            # Only another daemon can end the tasks of one that is dead.
            self.start()
        try:
            with self.connect() as client:
                # A shutdown is not repeated: wait until the daemon serves.
                client.list_page()
                client.within(DEADLINE).shutdown(tasks=ShutdownTasks.STOP, grace=0)
            self.exited()
        finally:
            if self._process is not None and self._process.poll() is None:
                self.kill()

    def _listens(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError((self.directory / "log").read_text())
        return self._connects()

    def _connects(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.socket)) == 0
