"""What every journal must do. Subclass one of the two classes, say how a journal is made, and pytest runs the suite.
Only the contract is used here: a test that needs to know how a journal works belongs with that journal.
"""

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.journal import (
    BEFORE_FIRST,
    Appended,
    Entry,
    EntryId,
    EntryUnknown,
    Journal,
    JournalLocked,
    JournalUnavailable,
    Outcome,
)

PAYLOADS = [b"one", b"", b'{"json": "\xc3\xa9"}', bytes(range(256)) * 20, b"five"]


def fill(journal: Journal, payloads: list[bytes], last: EntryId = BEFORE_FIRST) -> EntryId:
    for payload in payloads:
        appended = journal.append(last, payload)
        assert appended.outcome is Outcome.OK
        last = appended.last
    return last


def rest_after(journal: Journal, after: EntryId | None) -> list[Entry] | None:
    """None: the journal says that it does not hold it."""
    try:
        return list(journal.read(after))
    except EntryUnknown:
        return None


class JournalContract:
    """For any journal."""

    def make(self, folder: Path) -> Journal:
        """A journal that keeps its entries, not yet opened; two made for one folder are of one journal."""
        raise NotImplementedError

    def reopen(self, journal: Journal, folder: Path) -> Journal:
        """The same journal after its writer ended and another began, not yet opened."""
        journal.close()
        return journal

    @pytest.fixture
    def journal(self, tmp_path: Path) -> Iterator[Journal]:
        with closing(self.make(tmp_path / "journal")) as journal:
            yield journal

    def test_it_says_how_durable_it_is(self, journal: Journal) -> None:
        assert journal.durability in ("memory", "wal")

    def test_a_new_one_is_empty(self, journal: Journal) -> None:
        assert journal.open() >= 1
        assert list(journal.read(None)) == []
        assert list(journal.read(BEFORE_FIRST)) == []

    def test_each_opening_gives_a_higher_term(self, journal: Journal, tmp_path: Path) -> None:
        terms = [journal.open()]
        for _ in range(3):
            journal = self.reopen(journal, tmp_path / "journal")
            terms.append(journal.open())
        journal.close()
        assert terms == sorted(set(terms))

    def test_an_open_one_is_refused_to_a_second_opener(self, journal: Journal) -> None:
        journal.open()
        with pytest.raises(JournalLocked):
            journal.open()
        assert journal.append(BEFORE_FIRST, b"still the owner").outcome is Outcome.OK

    def test_entries_come_back_in_order_whole_and_chained(self, journal: Journal) -> None:
        term = journal.open()
        last = fill(journal, PAYLOADS)
        ids = [BEFORE_FIRST] + [EntryId(term, seq) for seq in range(1, len(PAYLOADS) + 1)]
        assert last == ids[-1]
        expected = [Entry(own, before, body) for before, own, body in zip(ids, ids[1:], PAYLOADS, strict=False)]
        assert list(journal.read(None)) == expected

    def test_it_reads_on_from_any_entry(self, journal: Journal) -> None:
        journal.open()
        fill(journal, PAYLOADS)
        entries = list(journal.read(None))
        for place, entry in enumerate(entries, start=1):
            assert list(journal.read(entry.id)) == entries[place:]

    def test_it_never_starts_further_on_than_asked(self, journal: Journal) -> None:
        term = journal.open()
        last = fill(journal, PAYLOADS)
        strangers = [EntryId(term, last.seq + 1), EntryId(term + 1, last.seq), EntryId(term + 1, 2), EntryId(term, 0)]
        for stranger in strangers:
            with pytest.raises(EntryUnknown):
                next(journal.read(stranger))

    def test_a_read_ends_at_what_was_last_when_it_began(self, journal: Journal) -> None:
        journal.open()
        last = fill(journal, PAYLOADS[:2])
        seen = []
        for entry in journal.read(None):
            seen.append(entry.payload)
            last = fill(journal, [b"appended meanwhile"], last)
        assert seen == PAYLOADS[:2]
        assert len(list(journal.read(None))) == 4

    @pytest.mark.parametrize(
        "wrong", [BEFORE_FIRST, EntryId(1, 1), EntryId(1, 3), EntryId(2, 2), EntryId(0, 2)], ids=str
    )
    def test_a_wrong_expectation_is_a_gap_and_changes_nothing(self, journal: Journal, wrong: EntryId) -> None:
        assert journal.open() == 1
        last = fill(journal, PAYLOADS[:2])
        before = list(journal.read(None))
        assert journal.append(wrong, b"lost") == Appended(Outcome.GAP, last)
        assert list(journal.read(None)) == before
        assert journal.append(last, b"found").outcome is Outcome.OK

    def test_history_goes_on_over_terms(self, journal: Journal, tmp_path: Path) -> None:
        first = journal.open()
        last = fill(journal, PAYLOADS)
        before = list(journal.read(None))
        journal = self.reopen(journal, tmp_path / "journal")
        with closing(journal):
            second = journal.open()
            assert list(journal.read(None)) == before
            assert journal.append(last, b"after") == Appended(Outcome.OK, EntryId(second, last.seq + 1))
            assert list(journal.read(last)) == [
                Entry(EntryId(second, last.seq + 1), EntryId(first, last.seq), b"after")
            ]

    @pytest.mark.parametrize("floor", range(len(PAYLOADS) + 1))
    def test_a_trim_lets_go_of_nothing_after_its_floor(self, journal: Journal, tmp_path: Path, floor: int) -> None:
        journal.open()
        fill(journal, PAYLOADS)
        entries = list(journal.read(None))
        ids = [BEFORE_FIRST, *(entry.id for entry in entries)]
        journal.trim(ids[floor])
        journal.trim(ids[floor])
        for _ in range(2):
            for place in range(len(ids)):
                assert rest_after(journal, ids[place]) in (
                    [None, entries[place:]] if place < floor else [entries[place:]]
                )
            assert rest_after(journal, None) in (None, entries)
            journal = self.reopen(journal, tmp_path / "journal")
            journal.open()
        with closing(journal):
            assert journal.append(ids[-1], b"after").outcome is Outcome.OK
            assert [entry.payload for entry in journal.read(ids[-1])] == [b"after"]

    def test_a_trim_beyond_the_end_keeps_the_end(self, journal: Journal) -> None:
        term = journal.open()
        last = fill(journal, PAYLOADS)
        journal.trim(EntryId(term + 1, last.seq + 10))
        assert list(journal.read(last)) == []
        assert journal.append(last, b"after").outcome is Outcome.OK

    def test_a_cut_loses_nothing_and_what_it_names_is_closed(self, journal: Journal, tmp_path: Path) -> None:
        journal.open()
        assert journal.cut() == journal.closed() == BEFORE_FIRST
        last = fill(journal, PAYLOADS[:2])
        cut = journal.cut()
        assert journal.closed() == cut in (last, BEFORE_FIRST)
        assert journal.cut() == cut  # nothing came since
        fill(journal, PAYLOADS[2:], last)
        assert [entry.payload for entry in journal.read(None)] == PAYLOADS
        again = self.reopen(journal, tmp_path / "journal")
        with closing(again):
            again.open()
            assert [entry.payload for entry in again.read(None)] == PAYLOADS

    def test_a_closed_one_refuses(self, journal: Journal) -> None:
        for _ in range(2):
            with pytest.raises(JournalUnavailable):
                journal.append(BEFORE_FIRST, b"")
            with pytest.raises(JournalUnavailable):
                next(journal.read(None))
            with pytest.raises(JournalUnavailable):
                journal.trim(BEFORE_FIRST)
            journal.open()
            journal.close()
            journal.close()

    def test_it_is_a_list(self) -> None:
        # Given inside: Hypothesis forbids one decorated method to be run by several subclasses.
        @settings(max_examples=40, deadline=None)
        @given(
            steps=st.lists(
                st.one_of(st.binary(max_size=300), st.sampled_from(["reopen", "gap", "read", "trim"])), max_size=30
            )
        )
        def run(steps: list[bytes | str]) -> None:
            with tempfile.TemporaryDirectory() as name:
                self.check_against_a_list(Path(name) / "journal", steps)

        run()

    def check_against_a_list(self, folder: Path, steps: list[bytes | str]) -> None:
        """Any run of appends, refused appends, reads and openings against the plainest model there is."""
        journal, model, floor = self.make(folder), list[bytes](), BEFORE_FIRST
        term, last = journal.open(), BEFORE_FIRST
        for step in steps:
            if isinstance(step, bytes):
                last = fill(journal, [step], last)
                model.append(step)
                assert last == EntryId(term, len(model))
            elif step == "gap":
                assert journal.append(EntryId(last.term, last.seq + 1), b"no") == Appended(Outcome.GAP, last)
            elif step == "reopen":
                journal = self.reopen(journal, folder)
                term = journal.open()
            elif step == "trim":
                floor = last
                journal.trim(floor)
            assert [entry.payload for entry in journal.read(floor)] == model[floor.seq :]
        journal.close()


class DurableJournalContract(JournalContract):
    """For a journal whose entries outlive the object that wrote them."""

    def reopen(self, journal: Journal, folder: Path) -> Journal:
        journal.close()
        return self.make(folder)

    def overtake(self, folder: Path) -> Journal:
        """A second writer, opened, which has taken the journal from the one that has it open now."""
        raise NotImplementedError

    def test_it_is_durable(self, journal: Journal) -> None:
        assert journal.durability != "memory"

    def test_a_second_writer_is_refused_until_the_first_closes(self, journal: Journal, tmp_path: Path) -> None:
        term = journal.open()
        with closing(self.make(tmp_path / "journal")) as second:
            with pytest.raises(JournalLocked):
                second.open()
            last = fill(journal, [b"by the first"])
            journal.close()
            assert second.open() > term
            assert [entry.id for entry in second.read(None)] == [last]

    def test_an_overtaken_writer_is_fenced_and_changes_nothing(self, journal: Journal, tmp_path: Path) -> None:
        term = journal.open()
        last = fill(journal, PAYLOADS)
        with closing(self.overtake(tmp_path / "journal")) as second:
            for _ in range(2):
                assert journal.append(last, b"too late") == Appended(Outcome.FENCED, last)
            assert [entry.payload for entry in second.read(None)] == PAYLOADS
            appended = second.append(last, b"mine")
            assert appended.outcome is Outcome.OK
            assert appended.last.term > term
            assert [entry.payload for entry in second.read(last)] == [b"mine"]
