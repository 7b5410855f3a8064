"""The laws of delivery, checked over what was journaled and nothing else: it reads changes, one after the other.

For each task and sample: leases never overlap; consumed once, until a reset; one that is set aside goes to its key
alone; nothing is done to one that is gone. At every revision: allocated = waiting + leased + consumed + dead + clearing
+ cleared, for each task. Revisions rise by one, indexes only grow, claim numbers and tokens are never used again. Each
event has one function with its law.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from core.arrays import unpack
from core.events import (
    Allotted,
    AnyEvent,
    BackendMetaSet,
    Change,
    ClearAborted,
    ClearCommitted,
    Cleared,
    ClearPlanned,
    Consumed,
    CustomMetaSet,
    Expired,
    Extended,
    Grouped,
    Inserted,
    Leased,
    LeasesEnded,
    PartitionDeleted,
    PartitionMade,
    Produced,
    Reset,
    Revoked,
    Settled,
    Timed,
)
from core.journal import FileJournal
from tests.histories.books import CONSUMED, DEAD, LEASED, WAITING, Account, Book, Broken, Held


class Audit:
    """Takes changes in their order; raises Broken at the first that breaks a law."""

    def __init__(self) -> None:
        self.revision = 0
        self.next_index = 0
        self.books: dict[str, Book] = {}
        self.leases: dict[int, Held] = {}
        self.used: set[str] = set()

    def take(self, change: Change) -> None:
        """All events of one change, and the balance after it."""
        if change.revision != self.revision + bool(change.events):
            raise Broken(f"revision {change.revision} follows {self.revision}")
        self.revision = change.revision
        try:
            for event in change.events:
                _LAWS.get(type(event), _ignore)(self, event)
            for name in {event.partition for event in change.events} & self.books.keys():
                self._balance(name, self.books[name])
        except Broken as broken:
            raise Broken(f"at revision {self.revision}: {broken}") from None

    def account(self, name: str, task: str) -> Account:
        """(allocated, waiting, leased, consumed, dead, clearing, cleared) of a task."""
        book = self.books[name]
        sums = book.task(task).sums
        held = (sums[WAITING], sums[LEASED], sums[CONSUMED], sums[DEAD])
        return (book.allocated, *held, len(book.clearing), book.cleared)

    def _balance(self, name: str, book: Book) -> None:
        for task in book.tasks:
            allocated, *rest = self.account(name, task)
            if allocated != sum(rest):
                raise Broken(f"task {task!r} of {name!r} has {allocated} samples, but its account says {rest}")

    def check_states(self) -> None:
        """The sums are what a count of every sample gives. Costs all of them."""
        for name, book in self.books.items():
            for task, kept in book.tasks.items():
                there = [state for index, state in kept.state.items() if index in book.live]
                found = {state: there.count(state) for state in kept.sums}
                if found != kept.sums or kept.state.keys() != book.live | book.clearing:
                    raise Broken(f"task {task!r} of {name!r}: {kept.sums}, but its samples are {found}")

    def book(self, name: str) -> Book:
        if name not in self.books:
            raise Broken(f"there is no partition {name!r}")
        return self.books[name]

    def rows(self, event: Any) -> tuple[Book, list[int]]:
        """The samples an event names, which must be there."""
        book, indexes = self.book(event.partition), unpack(event.indexes).tolist()
        if not book.live.issuperset(indexes) or len(set(indexes)) < len(indexes):
            raise Broken(f"{type(event).__name__} names samples twice or gone: {sorted(set(indexes) - book.live)}")
        return book, indexes

    # One law per event

    def made(self, event: PartitionMade) -> None:
        if event.partition in self.books:
            raise Broken(f"partition {event.partition!r} is made twice")
        self.books[event.partition] = Book()

    def deleted(self, event: PartitionDeleted) -> None:
        self.book(event.partition)
        del self.books[event.partition]
        self._end(held for held in self.leases.values() if held.partition == event.partition)

    def inserted(self, event: Inserted) -> None:
        if event.first < self.next_index:
            raise Broken(f"index {event.first} is given out again")
        book, fresh = self.book(event.partition), range(event.first, event.first + event.count)
        self.next_index = fresh.stop
        book.allocated += event.count
        book.live.update(fresh)
        for task in book.tasks.values():
            task.state.update(dict.fromkeys(fresh, WAITING))
            task.sums[WAITING] += event.count

    def there(self, event: Any) -> None:
        self.rows(event)

    def produced(self, event: Produced) -> None:
        book, indexes = self.rows(event)
        book.written.update(indexes)

    def expired(self, event: Expired) -> None:
        """They count as never inserted: nobody may have had them, and nothing was written for them."""
        book, indexes = self.rows(event)
        if book.written.intersection(indexes):
            raise Broken(f"samples that were produced expire: {indexes}")
        for task in book.tasks.values():
            for index in indexes:
                task.move(index, WAITING, WAITING)
            task.count(indexes, -1)
            task.forget(indexes)
        book.live.difference_update(indexes)
        book.allocated -= len(indexes)

    def consumed(self, event: Consumed) -> None:
        book, indexes = self.rows(event)
        task = book.task(event.task)
        if event.share:
            task.fetch(event.share, indexes)
        for index in indexes:
            task.move(index, WAITING, CONSUMED)

    def allotted(self, event: Allotted) -> None:
        """Samples are set aside: leased, by nobody yet."""
        shares = [unpack(share).tolist() for share in event.shares]
        book = self.book(event.partition)
        if not book.live.issuperset(set().union(*shares)):
            raise Broken(f"samples are set aside that are gone: {shares}")
        book.task(event.task).set_aside(event.key, shares)

    def leased(self, event: Leased) -> None:
        book, indexes = self.rows(event)
        if event.number != self.revision or event.token in self.used:
            raise Broken(f"claim {event.number} has a number or a token that was there before")
        self.used.add(event.token)
        task = book.task(event.task)
        if event.share:
            task.fetch(event.share, indexes)
        for index in indexes:
            if index in task.holder:
                raise Broken(f"sample {index} is held by {task.holder[index]}, and handed out to {event.number} too")
            task.move(index, WAITING, LEASED)
            task.holder[index] = event.number
        if indexes:
            self.leases[event.number] = Held(event.partition, event.task, set(indexes))

    def settled(self, event: Settled) -> None:
        held = self.leases.get(event.number)
        fates = {CONSUMED: event.accepted, WAITING: event.released, DEAD: event.dead}
        rows = [index for packed in fates.values() for index in unpack(packed).tolist()]
        if held is None or held.partition != event.partition or not held.rows.issuperset(rows):
            raise Broken(f"claim {event.number} settles samples that it does not hold: {rows}")
        for after, packed in fates.items():
            self._settle(self.book(event.partition), held.task, unpack(packed).tolist(), after)
        held.rows.difference_update(rows)
        self._end([])

    def _settle(self, book: Book, name: str, indexes: list[int], after: str) -> None:
        task = book.task(name)
        for index in indexes:
            task.move(index, LEASED, task.after(after, index), int(index not in book.clearing))
            del task.holder[index]

    def leases_ended(self, event: LeasesEnded) -> None:
        """All that they still hold is settled, and nothing else."""
        ended = [self.leases[number] for number in unpack(event.numbers).tolist()]
        rows = {WAITING: unpack(event.released).tolist(), DEAD: unpack(event.worn).tolist()}
        held = sorted(index for one in ended for index in one.rows)
        if any((one.partition, one.task) != (event.partition, event.task) for one in ended):
            raise Broken(f"leases of another task end with those of {event.task!r}: {ended}")
        if held != sorted(rows[WAITING] + rows[DEAD]):
            raise Broken(f"leases that end hold {held}, and settle {rows}")
        for after, indexes in rows.items():
            self._settle(self.book(event.partition), event.task, indexes, after)
        self._end(ended)

    def extended(self, event: Extended) -> None:
        if event.number not in self.leases:
            raise Broken(f"claim {event.number} is extended, but it has ended")

    def restored(self) -> None:
        """These are the books of a moment that was gone back to: nothing is leased or set aside any more."""
        self._end(self.leases.values())
        for book in self.books.values():
            for task in book.tasks.values():
                task.release_all(book.clearing)

    def reset(self, event: Reset) -> None:
        book = self.book(event.partition)
        book.tasks.pop(event.task, None)
        book.task(event.task)
        self._end(held for held in self.leases.values() if (held.partition, held.task) == (event.partition, event.task))

    def cleared(self, event: Cleared) -> None:
        book, indexes = self.rows(event)
        for task in book.tasks.values():
            task.count(indexes, -1)
        book.live.difference_update(indexes)
        self._gone(event.partition, book, set(indexes))

    def planned(self, event: ClearPlanned) -> None:
        book, indexes = self.rows(event)
        if event.number != self.revision:
            raise Broken(f"clear {event.number} has a number that was there before")
        for task in book.tasks.values():
            task.count(indexes, -1)
        book.live.difference_update(indexes)
        book.clearing.update(indexes)
        book.clears[event.number] = set(indexes)

    def committed(self, event: ClearCommitted) -> None:
        book, indexes = self._ended_clear(event)
        self._gone(event.partition, book, indexes)

    def aborted(self, event: ClearAborted) -> None:
        book, indexes = self._ended_clear(event)
        book.live |= indexes
        for task in book.tasks.values():
            task.count(indexes, 1)

    def _ended_clear(self, event: Any) -> tuple[Book, set[int]]:
        book = self.book(event.partition)
        if event.number not in book.clears:
            raise Broken(f"clear {event.number} ends, but it is not pending")
        indexes = book.clears.pop(event.number)
        book.clearing -= indexes
        return book, indexes

    def _gone(self, name: str, book: Book, indexes: set[int]) -> None:
        """For good, and with them what is leased of them."""
        for task in book.tasks.values():
            task.break_up(indexes, book.clearing)
            task.forget(indexes)
        book.cleared += len(indexes)
        for held in self.leases.values():
            if held.partition == name:
                held.rows -= indexes
        self._end([])

    def _end(self, ended: Iterable[Held]) -> None:
        for held in list(ended):
            held.rows.clear()
        self.leases = {number: held for number, held in self.leases.items() if held.rows}


def _ignore(_: Audit, event: AnyEvent) -> None:
    """Settings, limits, seal: they move no sample."""


_LAWS: dict[type, Callable[[Audit, Any], None]] = {
    PartitionMade: Audit.made,
    PartitionDeleted: Audit.deleted,
    Inserted: Audit.inserted,
    Grouped: Audit.there,
    Produced: Audit.produced,
    Revoked: Audit.there,
    Timed: Audit.there,
    Expired: Audit.expired,
    CustomMetaSet: Audit.there,
    BackendMetaSet: Audit.there,
    Consumed: Audit.consumed,
    Allotted: Audit.allotted,
    Leased: Audit.leased,
    Settled: Audit.settled,
    LeasesEnded: Audit.leases_ended,
    Extended: Audit.extended,
    Reset: Audit.reset,
    Cleared: Audit.cleared,
    ClearPlanned: Audit.planned,
    ClearCommitted: Audit.committed,
    ClearAborted: Audit.aborted,
}


def audit_journal(folder: Path) -> Audit:
    """The whole history in a journal's folder, whose service has ended. Raises Broken."""
    audit, journal = Audit(), FileJournal(folder)
    journal.open()
    try:
        for entry in journal.read(None):
            for change in msgspec.msgpack.decode(entry.payload, type=list[Change]):
                audit.take(change)
    finally:
        journal.close()
    audit.check_states()
    return audit
