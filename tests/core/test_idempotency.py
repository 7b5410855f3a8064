"""Replies kept by key: found by it alone, byte for byte, bounded by entries and bytes, the oldest let go, compressed
together, none for the collector.
"""

import gc
import os
import random
import sys

import msgspec
import pytest

from core.errors import IdempotencyMismatch
from core.events import Kept
from core.state import kept_replies
from core.state.kept_replies import ENTRY_BYTES, MAX_KEPT, MAX_KEPT_BYTES, KeptReplies, Keyed

DIGEST = b"d" * 32
SMALL = 32 * 2**10  # so that a block is 2 KiB


def reply(key: str, body: bytes = b"{}", digest: bytes = DIGEST) -> Kept:
    return Kept(key, digest, 201, body, None)


def keys(replies: KeptReplies, *names: str) -> list[str]:
    """Those of the names that are kept."""
    return [name for name in names if replies.find(Keyed(name, DIGEST)) is not None]


def noise(length: int, seed: int = 0) -> bytes:
    """What no compression makes smaller."""
    return random.Random(seed).randbytes(length)


def test_a_reply_is_found_by_its_key_and_another_key_finds_nothing() -> None:
    replies = KeptReplies()
    one = reply("a", b'{"n":1}')
    replies.put(one)
    replies.put(reply("b"))
    assert replies.find(Keyed("a", DIGEST)) == one
    assert replies.find(Keyed("A", DIGEST)) is None


@pytest.mark.parametrize("length", [0, 1, 100, 2**11, 2**18, 2**20 + 1, 9 * 2**20])
def test_it_comes_back_byte_for_byte_from_the_newest_and_from_every_block(length: int) -> None:
    replies = KeptReplies()
    one = Kept("one", DIGEST, 201, noise(length), '"tag"')
    replies.put(one)
    assert replies.find(Keyed("one", DIGEST)) == one
    for number in range(20):
        replies.put(reply(f"k{number}", b'{"n":%d}' % number * 10_000))
        assert replies.find(Keyed("one", DIGEST)) == one
        assert replies.find(Keyed(f"k{number}", DIGEST)) == reply(f"k{number}", b'{"n":%d}' % number * 10_000)


def test_another_request_under_the_key_is_a_mismatch() -> None:
    replies = KeptReplies(most_bytes=SMALL)
    for name in ("a", "b"):
        replies.put(reply(name, b"x" * 3000))
        with pytest.raises(IdempotencyMismatch):
            replies.find(Keyed("a", b"e" * 32))


def test_the_oldest_go_first_when_there_are_too_many() -> None:
    replies = KeptReplies(most=3)
    for name in "abcdefgh":
        replies.put(reply(name))
    assert keys(replies, *"abcdefgh") == ["f", "g", "h"]
    assert len(replies) == 3


@pytest.mark.parametrize("most_bytes", [100, SMALL, MAX_KEPT_BYTES])
def test_exactly_the_newest_of_any_size_are_kept_where_only_their_number_is_bounded(most_bytes: int) -> None:
    seed = int(os.environ.get("TEST_SEED", "1"))
    draw, replies = random.Random(seed), KeptReplies(most=50, most_bytes=most_bytes * 1000)
    for number in range(400):
        replies.put(reply(str(number), b"x" * draw.choice([1, 100, 3000, 20_000])))
        names = [str(each) for each in range(number + 1)]
        assert [name for name in names if name in replies._by_key] == names[-50:], seed
    assert keys(replies, *names) == names[-50:], seed


def test_the_oldest_go_first_when_there_are_too_many_bytes() -> None:
    replies = KeptReplies(most_bytes=SMALL)
    names = [f"k{number}" for number in range(100)]
    for seed, name in enumerate(names):
        replies.put(reply(name, noise(1000, seed)))
        assert replies.bytes <= SMALL
    found = keys(replies, *names)
    assert found == names[-len(found) :]
    assert SMALL // 1300 - 3 <= len(found) <= SMALL // 1000


def test_what_is_counted_is_what_it_takes_compressed() -> None:
    replies = KeptReplies()
    body = b",".join(b'{"index":%d}' % number for number in range(2000))
    for number in range(1000):
        replies.put(reply(f"k{number}", body))
    assert replies.bytes < 1000 * len(body) / 40
    held = sum(len(block.packed) + len(block.plain) for block in replies._blocks.values())
    entries = sum(ENTRY_BYTES + len(key) for key in replies._by_key)
    newest = sum(len(one.key) + len(one.digest) + len(one.body) for one in replies._newest)
    assert replies.bytes == held + entries + newest


def test_a_reply_larger_than_all_may_be_together_drives_nothing_out() -> None:
    replies = KeptReplies(most_bytes=SMALL)
    for name in ("a", "b"):
        replies.put(reply(name))
    replies.put(reply("large", noise(SMALL + 1)))
    assert keys(replies, "a", "b", "large") == ["a", "b"]
    replies.put(reply("c"))
    assert keys(replies, "a", "b", "c") == ["a", "b", "c"]


def test_no_call_compresses_more_than_a_few_pieces_of_a_large_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_replies, "PIECE_BYTES", 4000)
    replies, pieces = KeptReplies(), list[int]()
    pack = replies._pack
    replies._pack = lambda piece: (pieces.append(len(piece)), pack(piece))[1]
    large = reply("large", noise(kept_replies.BLOCK_BYTES))
    replies.put(large)
    for number in range(100):
        assert sum(pieces) <= 4000 * kept_replies.PIECES * (number + 1)
        assert replies.find(Keyed("large", DIGEST)) == large
        replies.put(reply(str(number)))
    assert sum(pieces) == len(msgspec.msgpack.encode([large]))


def test_a_key_that_was_let_go_may_be_used_for_another_request() -> None:
    replies = KeptReplies(most=2)
    for name in "abc":
        replies.put(reply(name))
    again = reply("a", digest=b"e" * 32)
    replies.put(again)
    assert replies.find(Keyed("a", b"e" * 32)) == again
    assert keys(replies, "b", "c") == ["c"]


def test_the_bounds_are_the_contracts() -> None:
    assert (MAX_KEPT, MAX_KEPT_BYTES) == (100_000, 32 * 2**20)
    replies = KeptReplies()
    assert (replies.most, replies.most_bytes) == (MAX_KEPT, MAX_KEPT_BYTES)


def test_ten_thousand_keys_and_more_take_a_bounded_room() -> None:
    most, body = 10_000, b"x" * 300
    replies = KeptReplies(most=most)
    for i in range(3 * most):
        replies.put(reply(f"{i:036}", body))
    assert len(replies) == most
    assert len(replies._blocks) < most * 400 / kept_replies.BLOCK_BYTES + 3
    held = [sys.getsizeof(part) for part in (replies._by_key, replies._blocks)]
    assert sum(held) < 2 * 2**20  # the dicts do not grow with what was let go
    assert keys(replies, f"{2 * most - 1:036}", f"{2 * most:036}", f"{3 * most - 1:036}") == [
        f"{2 * most:036}",
        f"{3 * most - 1:036}",
    ]


def test_the_garbage_collector_does_not_walk_its_keys_and_replies() -> None:
    replies = KeptReplies(most_bytes=SMALL)
    for i in range(100):
        replies.put(reply(str(i), noise(100, i)))
    gc.collect()
    assert not gc.is_tracked(replies._by_key)
    assert not any(gc.is_tracked(block.names) for block in replies._blocks.values())
    assert not gc.is_tracked(replies.find(Keyed("99", DIGEST)))
