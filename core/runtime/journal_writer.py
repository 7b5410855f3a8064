"""What the engine's thread does with the journal: replay at the start, one append a drain, closed parts, room."""

import logging
from collections.abc import Callable

import msgspec

from core.engine import Engine
from core.journal.contract import BEFORE_FIRST, Appended, EntryId, Journal, Outcome

from .replay import replay

_log = logging.getLogger("batchmeta")


class Broken(Exception):
    """Memory and journal may differ: the process must end and replay."""


class JournalWriter:
    """Writes the engine's log. `on_closed` is called when a part of the journal that no snapshot knows of is closed."""

    def __init__(self, engine: Engine, journal: Journal, on_closed: Callable[[EntryId], None]) -> None:
        self._engine, self._journal, self._on_closed = engine, journal, on_closed
        self._encoder = msgspec.msgpack.Encoder()
        self._last = BEFORE_FIRST  # the last entry
        self._closed = BEFORE_FIRST  # the last entry of a closed part

    def replay(self) -> None:
        """The state that the journal says. Raises JournalError."""
        self._closed, self._last = replay(self._engine, self._journal)
        self._look_for_closed()

    def commit(self) -> None:
        """All changes since the last time become one entry. Raises Broken, JournalError."""
        log = self._engine.log
        if not log:
            return
        payload = self._encoder.encode(log)
        appended = self._journal.append(self._last, payload)
        is_there = appended.outcome is Outcome.OK
        if appended.outcome is Outcome.UNKNOWN:
            appended, is_there = self._read_back(appended, payload)
        if not is_there:
            why = "fenced, another server owns its folder" if appended.outcome is Outcome.FENCED else appended.outcome
            raise Broken(f"the journal did not take a change: {why}, its last entry is {appended.last}")
        self._last = appended.last
        log.clear()
        self._look_for_closed()

    def _read_back(self, appended: Appended, payload: bytes) -> tuple[Appended, bool]:
        """Whether the entry that may be there or not is: whoever reads the journal next must see what we answer."""
        for entry in self._journal.read(self._last):
            return Appended(appended.outcome, entry.id), entry.payload == payload
        return appended, False

    def cut(self) -> EntryId:
        """Close the part of the journal that ends here; its last entry."""
        self._closed = self._journal.cut()
        return self._closed

    def tidy(self) -> None:
        """Let the journal go of what two snapshots hold."""
        self._journal.tidy()

    def look_for_room(self) -> None:
        """Whether the engine may take changes."""
        has_room = self._journal.has_room()
        if has_room is not self._engine.has_room:
            _log.warning("the journal has room again" if has_room else "low on disk space: changes are refused")
            self._engine.has_room = has_room

    def close(self) -> None:
        """The journal is not used any more."""
        self._journal.close()

    def _look_for_closed(self) -> None:
        closed = self._journal.closed()
        if closed != self._closed:
            self._closed = closed
            self._on_closed(closed)
