"""The blocking faces of streams that have a position."""

from __future__ import annotations

from typing import cast

from heeler._foreground import attach
from heeler._foreground.attach_cursor import AttachItem
from heeler._streams import watch
from heeler._streams.watch_cursor import WatchItem
from heeler.sync._face import Items
from heeler.v1 import AttachEnded, Bookmark


class Watch(Items[WatchItem]):
    """The blocking face of heeler.Watch."""

    @property
    def bookmark(self) -> Bookmark | None:
        """The position after the last item."""
        return cast(watch.Watch, self._inner).bookmark


class Attachment(Items[AttachItem]):
    """The blocking face of heeler.Attachment."""

    @property
    def offset(self) -> int | None:
        """The offset to resume from. None: no output was delivered."""
        return cast(attach.Attachment, self._inner).offset

    @property
    def ended(self) -> AttachEnded | None:
        """The last item, once it was delivered."""
        return cast(attach.Attachment, self._inner).ended
