"""The engine's thread and its journal: replay at the start, one append for each drain, closed parts, room."""

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
    """Writes the engine's log. `on_closed` gets the last entry of a part that was closed and has no snapshot yet."""

    def __init__(self, engine: Engine, journal: Journal, on_closed: Callable[[EntryId], None]) -> None:
        self._engine, self._journal, self._on_closed = engine, journal, on_closed
        self._encoder = msgspec.msgpack.Encoder()
        self._last = BEFORE_FIRST  # the last entry
        self._closed = BEFORE_FIRST  # the last entry of a closed part

    def replay(self) -> None:
        """Rebuild the engine's state from the journal. Raises JournalError."""
        self._closed, self._last = replay(self._engine, self._journal)
        self._look_for_closed()

    def commit(self) -> None:
        """Append all changes since the last commit as one entry. Raises Broken, JournalError."""
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
        """Whether an append of unknown outcome was stored: the replies must agree with what a replay will find."""
        for entry in self._journal.read(self._last):
            return Appended(appended.outcome, entry.id), entry.payload == payload
        return appended, False

    def cut(self) -> EntryId:
        """Close the journal's newest part. Returns its last entry."""
        self._closed = self._journal.cut()
        return self._closed

    def tidy(self) -> None:
        """Drop the journal's entries that two snapshots include."""
        self._journal.tidy()

    def look_for_room(self) -> None:
        """Tell the engine whether the journal has room for changes."""
        has_room = self._journal.has_room()
        if has_room is not self._engine.has_room:
            _log.warning("the journal has room again" if has_room else "low on disk space: changes are refused")
            self._engine.has_room = has_room

    def close(self) -> None:
        """Close the journal."""
        self._journal.close()

    def _look_for_closed(self) -> None:
        closed = self._journal.closed()
        if closed != self._closed:
            self._closed = closed
            self._on_closed(closed)
