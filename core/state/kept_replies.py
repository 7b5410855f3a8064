"""Replies kept by `Idempotency-Key`: the same call gets the same reply and changes nothing (contract#idempotency).

No clock, no I/O, no HTTP: a reply is a status, bytes and a tag. Kept replies are state, rebuilt from the journal
as partitions are. The executor and the parking lot track calls that have no reply yet.
"""

from dataclasses import dataclass
from typing import Protocol

from core.errors import IdempotencyMismatch
from core.events import Kept

MAX_KEPT = 100_000
MAX_KEPT_BYTES = 256 * 2**20


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
    def body(self) -> bytes: ...

    @property
    def etag(self) -> str | None: ...

    @property
    def is_kept(self) -> bool: ...


def kept(keyed: Keyed, reply: Keepable) -> Kept:
    """What the journal stores of a reply."""
    return Kept(keyed.key, keyed.digest, reply.status, reply.body, reply.etag)


class KeptReplies:
    """Replies by key, the newest `most` of them and no more than `most_bytes`; age plays no part.

    Two dicts, whose entries the garbage collector does not track. Replies are numbered to find the oldest: the first
    key of a dict is slow to find once many before it were deleted.
    """

    __slots__ = ("_by_key", "_keys", "_made", "_most", "_most_bytes", "bytes")

    def __init__(self, most: int = MAX_KEPT, most_bytes: int = MAX_KEPT_BYTES) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._by_key: dict[str, Kept] = {}
        self._keys: dict[int, str] = {}
        self._made = 0
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._by_key)

    def find(self, keyed: Keyed) -> Kept | None:
        """The reply to this request, None if there is none. Raises IdempotencyMismatch for another request's key."""
        found = self._by_key.get(keyed.key)
        if found is not None:
            keyed.check(found.digest)
        return found

    def put(self, reply: Kept) -> None:
        """Keep the reply to a new key, and drop the oldest beyond the bounds. One above `most_bytes` is not kept."""
        size = size_of(reply)
        if size > self._most_bytes:
            return
        self._by_key[reply.key] = reply
        self._keys[self._made] = reply.key
        self._made += 1
        self.bytes += size
        while len(self._by_key) > self._most or self.bytes > self._most_bytes:
            oldest = self._keys.pop(self._made - len(self._keys))
            self.bytes -= size_of(self._by_key.pop(oldest))


def size_of(reply: Kept) -> int:
    """Bytes of an entry, as they are counted. Python's own, about 400 an entry, are not."""
    return len(reply.key) + len(reply.digest) + len(reply.body) + len(reply.etag or "")
