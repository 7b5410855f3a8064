"""The bytes of a journal on disk, as pure functions: nothing here opens a file. Little-endian throughout.

    segment  kind 8s | version u32 | journal u64 | previous term u64, seq u64 | crc u32 | entries …
    entry    mark 4s | length u32 | term u64, seq u64 | previous term u64, seq u64 | payload crc u32 | crc u32 | payload
    snapshot kind 8s | version u32 | journal u64 | last term u64, seq u64 | length u64 | image crc u64 | crc u32 | image
    head     kind 8s | version u32 | journal u64 | term u64 | oldest u64 | newest u64 | last term u64, seq u64 | crc u32

`journal` is a random number drawn when the journal was created; entry ids alone do not tell two journals apart.
The top bit of an entry's `length` says that its payload is stored compressed; so is an image that begins as such.
Each `crc` is CRC-32 (zlib) of all before it in its own record. So an entry's length is checked before its payload is
read, which tells a write that did not finish (the file ends inside the entry) from damage (more follows).
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from core.compression import MAGIC, Pack, unpack

from .contract import Entry, EntryId

VERSION: Final = 2  # 1: nothing is compressed; such files are read too
# Bytes that no UTF-8 text holds, so that JSON in a payload is never taken for the start of an entry.
MARK: Final = b"\xf8je\xff"
SEGMENT: Final = b"\xf8segment"
HEAD: Final = b"\xf8head\r\n\xff"
SNAPSHOT: Final = b"\xf8snapsh\xff"
PACKED: Final = 2**31
# Fewer bytes are hardly smaller when compressed; more would hold the thread that appends for too long.
LEAST_PACKED, MOST_PACKED = 1024, 4 * 2**20

_CRC: Final = struct.Struct("<I")
_FIELDS: Final = struct.Struct("<4sIQQQQI")
_ENTRY: Final = struct.Struct("<4sIQQQQII")

SEGMENT_HEADER_BYTES: Final = struct.calcsize("<8sIQQQI")
ENTRY_HEADER_BYTES: Final = _ENTRY.size
SNAPSHOT_HEADER_BYTES: Final = struct.calcsize("<8sIQQQQQI")

RESTORE: Final = "restore the folder from a backup, or start from a checkpoint in an empty one"
STEP_BACK: Final = "move this file away: the snapshot before it and the journal hold the same"
UPGRADE: Final = "start the version that wrote it, or a newer one"


class Damage(Exception):
    """Bytes that are not a valid record. `torn`: they may be one last write that did not finish."""

    def __init__(self, offset: int, what: str, advice: str = RESTORE, *, torn: bool = False) -> None:
        super().__init__(what)
        self.offset, self.what, self.advice, self.torn = offset, what, advice, torn


@dataclass(frozen=True, slots=True)
class Head:
    """What the folder must hold: the highest term given out, the oldest and newest segment by first seq, and an entry
    that was on disk when this was written. Without it a lost newest segment would look like a shorter history."""

    journal: int
    term: int
    oldest: int
    newest: int
    last: EntryId


def encode_head(head: Head) -> bytes:
    return _seal(HEAD, head.journal, head.term, head.oldest, head.newest, head.last.term, head.last.seq)


def decode_head(data: bytes) -> Head:
    """Raises `Damage`."""
    journal, term, oldest, newest, last_term, last_seq = _unseal(HEAD, 6, data)
    return Head(journal, term, oldest, newest, EntryId(last_term, last_seq))


def encode_snapshot_header(journal: int, last: EntryId, image: bytes) -> bytes:
    return _seal(SNAPSHOT, journal, last.term, last.seq, len(image), crc32(image))


def decode_snapshot(data: bytes, journal: int | None) -> tuple[EntryId, bytes]:
    """(last entry that the image includes, image) of a snapshot of `journal`; None: of any. Raises `Damage`."""
    try:
        of, term, seq, length, crc = _unseal(SNAPSHOT, 5, data[:SNAPSHOT_HEADER_BYTES])
    except Damage as damage:
        damage.advice = damage.advice if damage.advice == UPGRADE else STEP_BACK
        raise
    image = data[SNAPSHOT_HEADER_BYTES:]
    if len(image) != length or crc32(image) != crc:
        raise Damage(SNAPSHOT_HEADER_BYTES, "the image is not what its checksum says", STEP_BACK)
    if journal is not None and of != journal:
        raise Damage(0, "this is a snapshot of another journal", STEP_BACK)
    return EntryId(term, seq), unpack(image) if image.startswith(MAGIC) else image


def encode_segment_header(journal: int, previous: EntryId) -> bytes:
    return _seal(SEGMENT, journal, previous.term, previous.seq)


def decode_segment_header(data: bytes, journal: int | None) -> EntryId:
    """The id before the first entry of a segment of `journal`; None: of any. Raises `Damage`."""
    of, term, seq = _unseal(SEGMENT, 3, data[:SEGMENT_HEADER_BYTES])
    if journal is not None and of != journal:
        raise Damage(0, "this is a segment of another journal")
    return EntryId(term, seq)


def encode_entry(entry: Entry, pack: Pack | None = None) -> bytes:
    """The record; `pack` compresses the payload, where that pays. Raises `ValueError` for one of 2 GiB or more."""
    own, before, payload = entry.id, entry.previous, entry.payload
    if len(payload) >= PACKED:
        raise ValueError("an entry must be shorter than 2 GiB")
    length = len(payload)
    if pack is not None and LEAST_PACKED <= length <= MOST_PACKED:
        payload = pack(payload)
        length = PACKED | len(payload)
    fields = _FIELDS.pack(MARK, length, own.term, own.seq, before.term, before.seq, crc32(payload))
    return b"".join((fields, _CRC.pack(crc32(fields)), payload))


def scan(data: bytes, previous: EntryId) -> Iterator[tuple[int, int, int, int, bool]]:
    """Each entry of a segment as (term, seq, start of payload, its end, is it compressed), checked and chained to
    `previous`.

    Plain numbers, since a start reads every entry that is stored. Raises `Damage` at the first one that is damaged.
    """
    view, size, unpack = memoryview(data), len(data), _ENTRY.unpack_from
    offset, last_term, last_seq = SEGMENT_HEADER_BYTES, previous.term, previous.seq
    while offset < size:
        start = offset + ENTRY_HEADER_BYTES
        if start > size:
            raise _diagnosis(data, offset)
        mark, length, term, seq, before_term, before_seq, payload_crc, crc = unpack(data, offset)
        end = start + (length & ~PACKED)
        sound = mark == MARK and crc == crc32(view[offset : start - 4]) and end <= size
        if not sound or payload_crc != crc32(view[start:end]):
            raise _diagnosis(data, offset)
        if (before_term, before_seq, seq) != (last_term, last_seq, last_seq + 1) or term < last_term:
            what = f"entry {term}-{seq} follows {before_term}-{before_seq}, but is found after {last_term}-{last_seq}"
            raise Damage(offset, what)
        yield term, seq, start, end, length >= PACKED
        offset, last_term, last_seq = end, term, seq


def _diagnosis(data: bytes, offset: int) -> Damage:
    size, start = len(data), offset + ENTRY_HEADER_BYTES
    header = data[offset:start]
    if len(header) == ENTRY_HEADER_BYTES and header[:4] == MARK and crc32(header[:-4]) == _CRC.unpack(header[-4:])[0]:
        _, length, term, seq, *_ = _ENTRY.unpack(header)
        end = start + (length & ~PACKED)
        wrong = "cut short" if end > size else "not what its checksum says"
        return _tail(offset, f"entry {term}-{seq} is {wrong}", torn=end >= size)
    # The length is unknown, so the mark of another entry further on shows that this is not an unfinished last write.
    return _tail(offset, "the header of an entry is damaged", torn=data.find(MARK, offset + 1) < 0)


def _tail(offset: int, what: str, *, torn: bool) -> Damage:
    return Damage(offset, what if torn else f"{what}, and more entries follow it", torn=torn)


def _seal(kind: bytes, *numbers: int) -> bytes:
    body = struct.pack(f"<8sI{len(numbers)}Q", kind, VERSION, *numbers)
    return body + _CRC.pack(crc32(body))


def _unseal(kind: bytes, count: int, data: bytes) -> tuple[int, ...]:
    layout = struct.Struct(f"<8sI{count}QI")
    if data[:8] != kind:
        raise Damage(0, "this is not a file of a journal")
    version = int.from_bytes(data[8:12], "little")
    if version > VERSION:
        raise Damage(8, f"format {version} is newer than {VERSION}, the newest known here", UPGRADE)
    if len(data) != layout.size or crc32(data[:-4]) != _CRC.unpack(data[-4:])[0]:
        raise Damage(0, "the header is not what its checksum says")
    return tuple(int(number) for number in layout.unpack(data)[2:-1])
