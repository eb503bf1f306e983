"""The client for programs without an event loop: every call blocks until it is answered.

    import heeler.sync

    with heeler.sync.connect_or_start() as client:
        task = client.spawn("make test", session="demo")
        print(heeler.outcome(task.wait()))

Each method runs the method of the asyncio client on a background thread, with the same arguments.
`within` sets a deadline for calls, as `asyncio.timeout` does for the asyncio client.
"""

from heeler.sync._client import Client, connect, connect_or_start
from heeler.sync._face import Items
from heeler.sync._input import InputFile
from heeler.sync._session import Session
from heeler.sync._streams import Attachment, Watch
from heeler.sync._task import Task
from heeler.sync._work import Body, Work

__all__ = [
    "Attachment",
    "Body",
    "Client",
    "InputFile",
    "Items",
    "Session",
    "Task",
    "Watch",
    "Work",
    "connect",
    "connect_or_start",
]
