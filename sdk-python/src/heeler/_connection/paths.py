"""The paths of the socket and the token of a user's daemon, the same as in the daemon.

Nothing is created here. A directory below one that others can write to is used only if it is
private to this user: the listener there gets commands to run.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from heeler._errors.base import AddressError


def default_socket(run_user: Path = Path("/run/user"), tmp: Path = Path("/tmp")) -> Path:
    """Returns the socket of this user's daemon.

    `$XDG_RUNTIME_DIR/heeler/heeler.sock`; without that variable the same under `/run/user/<uid>`
    where this user owns it, else `/tmp/heeler-<uid>/heeler.sock`.
    """
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    # The XDG specification says to ignore relative paths.
    if runtime.is_absolute():
        return runtime / "heeler/heeler.sock"
    uid = os.geteuid()
    run = run_user / str(uid)
    if _is_own_directory(run, uid):
        return run / "heeler/heeler.sock"
    directory = tmp / f"heeler-{uid}"
    _check_private(directory, uid)
    return directory / "heeler.sock"


def token_file() -> Path:
    """Returns the file with the token for calls over TCP to this user's daemon."""
    return _state_dir() / "token"


def _state_dir() -> Path:
    named = os.environ.get("HEELER_STATE_DIR")
    if named:
        return Path(named).absolute()
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (state if state.is_absolute() else Path.home() / ".local/state") / "heeler"


def _is_own_directory(path: Path, uid: int) -> bool:
    try:
        found = path.stat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == uid


def _check_private(directory: Path, uid: int) -> None:
    """Raises AddressError for a directory that another user may have made. It may be missing."""
    try:
        found = directory.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise AddressError(f"cannot check {directory}: {error.strerror}") from error
    private = stat.S_ISDIR(found.st_mode) and found.st_uid == uid and not found.st_mode & 0o077
    if not private:
        raise AddressError(
            f"{directory} is not a private directory of user {uid}: "
            "remove it, or set XDG_RUNTIME_DIR"
        )
