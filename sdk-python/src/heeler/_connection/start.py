"""Starts the user's daemon by `heeler start`, as the command does. Nothing else here starts one."""

from __future__ import annotations

import asyncio
import os
import shutil
from subprocess import DEVNULL, PIPE

from heeler._connection.address import ENV, Address
from heeler._errors.base import DaemonStartError, NotInstalledError

BINARY_ENV = "HEELER_BINARY"
"""The environment variable that names the program."""


async def start_daemon(program: str | os.PathLike[str] | None) -> Address:
    """Runs `heeler start` and returns the address that it prints once the daemon answers.

    Raises NotInstalledError if there is no such program, and DaemonStartError if it fails.
    """
    path, origin = _find(program)
    # An empty address is none for the clients, but not for the command.
    environment = {name: value for name, value in os.environ.items() if name != ENV}
    try:
        starting = await asyncio.create_subprocess_exec(
            path, "start", stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=environment
        )
    except OSError as error:
        raise NotInstalledError(path, origin, error.strerror or str(error)) from error
    try:
        printed, errors = await starting.communicate()
    except BaseException:
        # The caller was cancelled. A daemon that was started stays.
        if starting.returncode is None:
            starting.kill()
            await starting.wait()
        raise
    if starting.returncode != 0:
        raise DaemonStartError(path, errors.decode(errors="replace").strip())
    return Address.parse(printed.decode().strip())


def _find(program: str | os.PathLike[str] | None) -> tuple[str, str]:
    """Returns the program to run, and where its name comes from."""
    if program is not None:
        return os.fspath(program), "the option program"
    if named := os.environ.get(BINARY_ENV):
        return named, BINARY_ENV
    if found := shutil.which("heeler"):
        return found, "PATH"
    raise NotInstalledError("heeler", "PATH", "No such file or directory")
