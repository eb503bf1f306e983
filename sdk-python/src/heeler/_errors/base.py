"""The exceptions of the client itself: everything but refusals, which are in `refused`.

The package raises HeelerError and its subclasses. The exceptions to that rule are TypeError and
ValueError for arguments that fit in no request, and TimeoutError for a deadline of the caller.

    HeelerError
    ├── AddressError, CredentialsError      also ValueError
    ├── ClientClosedError, WorkClosedError
    ├── InputBrokenError                    also BrokenPipeError
    ├── DaemonStartError
    │   └── NotInstalledError
    ├── TaskStillRunningError               also TimeoutError
    ├── TaskSurvivedError
    ├── DaemonConnectionError               also ConnectionError
    │   ├── DaemonNotRunningError
    │   ├── DaemonUnreachableError
    │   └── DisconnectedError
    └── RefusedError
        └── one class for each reason, such as TaskNotFoundError
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heeler._connection.address import Address
    from heeler.v1 import BackgroundTask


class HeelerError(Exception):
    """The base of all errors of this package."""


class AddressError(HeelerError, ValueError):
    """The address of a daemon is not valid."""


class CredentialsError(HeelerError, ValueError):
    """The token or the certificate authority for a daemon over TCP cannot be used."""


class ClientClosedError(HeelerError):
    """The client was closed before or during the call."""


class WorkClosedError(HeelerError):
    """The worker has left its task before the end of the task."""


class InputBrokenError(HeelerError, BrokenPipeError):
    """The input of a task takes nothing more: it is closed, or the task has ended.

    The cause is the refusal of the daemon.
    """

    def __init__(self, task_id: str, cause: HeelerError) -> None:
        super().__init__(f"{task_id} takes no more input: {cause}")
        self.__cause__ = cause


class DaemonStartError(HeelerError):
    """`heeler start` failed. `program` is the program that was run."""

    def __init__(self, program: str, problem: str) -> None:
        super().__init__(f"`{program} start` failed: {problem}")
        self.program = program


class NotInstalledError(DaemonStartError):
    """The daemon cannot be started: there is no program `heeler` that can be executed."""

    def __init__(self, program: str, origin: str, problem: str) -> None:
        HeelerError.__init__(
            self,
            f"cannot start the daemon: cannot execute `{program}` (from {origin}): {problem}; "
            "install it with `cargo install --path cli` in a checkout of Heeler, "
            "or set HEELER_BINARY to its path",
        )
        self.program = program


class TaskStillRunningError(HeelerError, TimeoutError):
    """The timeout of a wait came before its condition. `task` is the state of the task."""

    def __init__(self, task: BackgroundTask) -> None:
        super().__init__(f"{task.id} is still running")
        self.task = task


class TaskSurvivedError(HeelerError):
    """A task was killed for 10 s and some of its processes still exist.

    The kill goes on. `task` is its state; `task.stop.proof.survivors` has the processes.
    """

    def __init__(self, task: BackgroundTask) -> None:
        processes = task.stop.proof.survivors.processes
        named = ", ".join(f"{process.pid} ({process.command})" for process in processes)
        super().__init__(
            f"{task.id} was killed, but these processes still exist: {named}; the kill goes on"
        )
        self.task = task


class DaemonConnectionError(HeelerError, ConnectionError):
    """The daemon gave no answer. `address` is the address that was tried."""

    def __init__(self, address: Address, message: str) -> None:
        super().__init__(message)
        self.address = address


class DaemonNotRunningError(DaemonConnectionError):
    """No daemon listens at the address. The message has the command that starts one."""

    def __init__(self, address: Address) -> None:
        start = address.start_command()
        super().__init__(address, f"no daemon answers at {address}: start one with `{start}`")


class DaemonUnreachableError(DaemonConnectionError):
    """The address cannot be connected to, for a reason other than a missing daemon.

    `cause` is the error of the system: a PermissionError if the listener is not trusted, an
    ssl.SSLError if its certificate is not, else a failure of the network.
    """

    def __init__(self, address: Address, cause: OSError) -> None:
        super().__init__(address, f"cannot connect to {address}: {cause.strerror or cause}")
        self.cause = cause


class DisconnectedError(DaemonConnectionError):
    """The connection broke during the call. The daemon may have received it."""

    def __init__(self, address: Address) -> None:
        super().__init__(address, f"the connection to {address} broke")
