"""Replies kept by `Idempotency-Key`: the same call gets the same reply and changes nothing (contract#idempotency).

No clock, no I/O, no HTTP: a reply is a status, bytes and a tag. Kept replies are state, rebuilt from the journal
as partitions are. The executor and the parking lot track calls that have no reply yet.
"""

from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from core.compression import Pack, packer, unpack
from core.errors import IdempotencyMismatch
from core.events import Kept

MAX_KEPT: Final = 100_000
MAX_KEPT_BYTES: Final = 32 * 2**20
BLOCK_BYTES: Final = 2**20
WINDOW: Final = 21  # so that all of a block is looked at
PIECE_BYTES: Final = 2**20  # compressed at once, in 0.5 ms
PIECES: Final = 4  # that one call pays for
MOST_WAITING: Final = 64 * 2**20
ENTRY_BYTES: Final = 150  # that Python needs for an entry beside the bytes of its reply: its key, its place in a table
_decode = msgspec.msgpack.Decoder(list[Kept]).decode


@dataclass(frozen=True, slots=True)
class Keyed:
    """A caller's key, and the digest of its request."""

    key: str
    digest: bytes

    def check(self, digest: bytes) -> None:
        """Raises IdempotencyMismatch where the key was sent with a request of another digest."""
        if digest != self.digest:
            raise IdempotencyMismatch


class Keepable(Protocol):
    """A rendered reply. `is_kept`: it is given again to the same key; else the key is forgotten at once."""

    @property
    def status(self) -> int: ...

    @property
    def body(self) -> bytes | memoryview: ...

    @property
    def etag(self) -> str | None: ...

    @property
    def is_kept(self) -> bool: ...


def kept(keyed: Keyed, reply: Keepable) -> Kept:
    """What the journal stores of a reply."""
    return Kept(keyed.key, keyed.digest, reply.status, bytes(reply.body), reply.etag)


@dataclass(slots=True, eq=False)
class Block:
    """Replies that came one after the other, compressed together: they differ in little.

    `packed`: zstd frames of the first `done` bytes of `plain`, their MessagePack, which goes once all are compressed.
    `names`: their keys, of which the first `gone` are let go.
    """

    names: tuple[str, ...]
    plain: bytes
    packed: bytes = b""
    done: int = 0
    gone: int = 0

    @property
    def waiting(self) -> int:
        """Bytes that are not compressed yet."""
        return len(self.plain) - self.done

    def compress(self, pack: Pack) -> tuple[int, int]:
        """One more piece: its length, and that of its frame."""
        piece = self.plain[self.done : self.done + PIECE_BYTES]
        frame = pack(piece)
        self.packed += frame
        self.done += len(piece)
        if not self.waiting:
            self.plain, self.done = b"", 0
        return len(piece), len(frame)

    def find(self, key: str) -> Kept:
        """One of its replies, which takes decoding all of them."""
        return _last(_decode(self.plain or unpack(self.packed)), key)


class KeptReplies:
    """Replies by key, the newest `most` of them and no more than `most_bytes`; age plays no part.

    The newest are as they came; once they are many bytes they become a block. Where bytes run out the oldest block goes
    as a whole. A large reply is compressed in pieces, by the calls after it too; until then it is not counted.
    """

    __slots__ = (
        "_blocks", "_by_key", "_newest", "_newest_bytes", "_number", "_oldest", "_pack", "_waiting",
        "bytes", "most", "most_bytes",
    )  # fmt: skip

    def __init__(self, most: int = MAX_KEPT, most_bytes: int = MAX_KEPT_BYTES) -> None:
        self.most, self.most_bytes = most, most_bytes
        self.bytes = 0  # all that is counted
        self._by_key: dict[str, int] = {}  # the number of the block
        self._blocks: dict[int, Block] = {}
        self._oldest = self._number = 0  # of the oldest block, and of the one that is to be made of the newest replies
        self._newest: list[Kept] = []
        self._newest_bytes = 0
        self._waiting: list[int] = []  # numbers of the blocks that are not wholly compressed
        self._pack = packer(WINDOW)

    def bounded_as(self, other: "KeptReplies") -> None:
        """After it was made from an image, which holds neither bounds nor what can be derived."""
        self.most, self.most_bytes = other.most, other.most_bytes
        for number, block in self._blocks.items():
            self._by_key.update(dict.fromkeys(block.names[block.gone :], number))
        self._by_key.update(dict.fromkeys((reply.key for reply in self._newest), self._number))

    def __len__(self) -> int:
        return len(self._by_key)

    def find(self, keyed: Keyed) -> Kept | None:
        """The reply to this request, None if there is none. Raises IdempotencyMismatch for another request's key."""
        number = self._by_key.get(keyed.key)
        if number is None:
            return None
        is_new = number == self._number
        found = _last(self._newest, keyed.key) if is_new else self._blocks[number].find(keyed.key)
        keyed.check(found.digest)
        return found

    def put(self, reply: Kept) -> None:
        """Keep the reply to a new key, and drop the oldest beyond the bounds. One that is larger than they are, also
        compressed, is not kept.
        """
        size = _bytes_of(reply)
        if size >= self._block_bytes:
            self._close()
        self._by_key[reply.key] = self._number
        self._newest.append(reply)
        self._newest_bytes += size
        self.bytes += size + _entry(reply.key)
        if self._newest_bytes >= self._block_bytes:
            self._close()
        if self._waiting:
            self._compress()
        while len(self._by_key) > self.most:
            self._let_go_of_one()
        while self.bytes > self.most_bytes:
            self._let_go_of_block()

    @property
    def _block_bytes(self) -> int:
        return min(BLOCK_BYTES, self.most_bytes // 16)

    def _close(self) -> None:
        """Make the newest replies a block, which is still to be compressed."""
        if self._newest:
            names, plain = tuple(reply.key for reply in self._newest), msgspec.msgpack.encode(self._newest)
            self._blocks[self._number] = Block(names, plain)
            self._waiting.append(self._number)
            self.bytes -= self._newest_bytes
            self._newest, self._newest_bytes = [], 0
            self._number += 1

    def _compress(self) -> None:
        pieces = PIECES
        waiting = sum(self._blocks[number].waiting for number in self._waiting)
        while self._waiting and (pieces > 0 or waiting > MOST_WAITING):
            block = self._blocks[self._waiting[0]]
            piece, frame = block.compress(self._pack)
            self.bytes += frame
            pieces, waiting = pieces - 1, waiting - piece
            if len(block.packed) > self.most_bytes:
                self._drop(self._waiting[0])
            elif not block.waiting:
                del self._waiting[0]

    def _let_go_of_one(self) -> None:
        if not self._blocks:
            self._close()
        block = self._blocks[self._first()]
        self._forget(self._oldest, block.names[block.gone])
        block.gone += 1
        if block.gone == len(block.names):
            self._drop(self._oldest)

    def _let_go_of_block(self) -> None:
        if not self._blocks:
            self._close()
        self._drop(self._first())

    def _first(self) -> int:
        """The number of the oldest block: they are numbered as they come, and one in between may be dropped."""
        while self._oldest not in self._blocks:
            self._oldest += 1
        return self._oldest

    def _drop(self, number: int) -> None:
        block = self._blocks.pop(number)
        self.bytes -= len(block.packed)
        for name in block.names[block.gone :]:
            self._forget(number, name)
        if number in self._waiting:
            self._waiting.remove(number)

    def _forget(self, number: int, name: str) -> None:
        self.bytes -= _entry(name)
        if self._by_key.get(name) == number:
            del self._by_key[name]


def _last(replies: list[Kept], key: str) -> Kept:
    return next(reply for reply in reversed(replies) if reply.key == key)


def _bytes_of(reply: Kept) -> int:
    return len(reply.key) + len(reply.digest) + len(reply.body) + len(reply.etag or "")


def _entry(key: str) -> int:
    return len(key) + ENTRY_BYTES
