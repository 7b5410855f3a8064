"""Replies kept by key: found by it alone, bounded by entries and bytes, the oldest let go, none for the collector."""

import gc
import sys

import pytest

from core.errors import IdempotencyMismatch
from core.events import Kept
from core.state.kept_replies import MAX_KEPT, MAX_KEPT_BYTES, KeptReplies, Keyed, size_of

DIGEST = b"d" * 32


def reply(key: str, body: bytes = b"{}", digest: bytes = DIGEST) -> Kept:
    return Kept(key, digest, 201, body, None)


def keys(replies: KeptReplies, *names: str) -> list[str]:
    """Those of the names that are kept."""
    return [name for name in names if replies.find(Keyed(name, DIGEST)) is not None]


def test_a_reply_is_found_by_its_key_and_another_key_finds_nothing() -> None:
    replies = KeptReplies()
    one = reply("a", b'{"n":1}')
    replies.put(one)
    replies.put(reply("b"))
    assert replies.find(Keyed("a", DIGEST)) is one
    assert replies.find(Keyed("A", DIGEST)) is None


def test_another_request_under_the_key_is_a_mismatch() -> None:
    replies = KeptReplies()
    replies.put(reply("a"))
    with pytest.raises(IdempotencyMismatch):
        replies.find(Keyed("a", b"e" * 32))


def test_the_oldest_go_first_when_there_are_too_many() -> None:
    replies = KeptReplies(most=3)
    for name in "abcde":
        replies.put(reply(name))
    assert keys(replies, *"abcde") == ["c", "d", "e"]
    assert len(replies) == 3
    assert replies.bytes == 3 * size_of(reply("a"))


def test_the_oldest_go_first_when_there_are_too_many_bytes() -> None:
    replies = KeptReplies(most_bytes=3 * size_of(reply("a", b"x" * 100)))
    for name in "abc":
        replies.put(reply(name, b"x" * 100))
    assert keys(replies, *"abc") == ["a", "b", "c"]
    replies.put(reply("d", b"x" * 101))
    assert keys(replies, *"abcd") == ["c", "d"]
    assert replies.bytes == size_of(reply("c", b"x" * 100)) + size_of(reply("d", b"x" * 101))


def test_a_reply_larger_than_all_may_be_together_drives_nothing_out() -> None:
    replies = KeptReplies(most_bytes=200)
    replies.put(reply("a"))
    replies.put(reply("b", b"x" * 200))
    assert keys(replies, "a", "b") == ["a"]


def test_a_key_that_was_let_go_may_be_used_for_another_request() -> None:
    replies = KeptReplies(most=2)
    for name in "abc":
        replies.put(reply(name))
    again = reply("a", digest=b"e" * 32)
    replies.put(again)
    assert replies.find(Keyed("a", b"e" * 32)) is again
    assert keys(replies, "b", "c") == ["c"]


def test_the_bounds_are_the_contracts() -> None:
    assert (MAX_KEPT, MAX_KEPT_BYTES) == (100_000, 256 * 2**20)
    replies = KeptReplies()
    assert (replies._most, replies._most_bytes) == (MAX_KEPT, MAX_KEPT_BYTES)


def test_ten_thousand_keys_and_more_take_a_bounded_room() -> None:
    most, body = 10_000, b"x" * 300
    replies = KeptReplies(most=most)
    for i in range(3 * most):
        replies.put(reply(f"{i:036}", body))
    assert len(replies) == most
    assert replies.bytes == most * (36 + 32 + 300)
    assert len(replies._keys) == most
    held = [sys.getsizeof(part) for part in (replies._by_key, replies._keys)]
    assert sum(held) < 3 * 2**20  # the dicts do not grow with what was let go
    assert keys(replies, f"{2 * most - 1:036}", f"{2 * most:036}", f"{3 * most - 1:036}") == [
        f"{2 * most:036}",
        f"{3 * most - 1:036}",
    ]


def test_the_garbage_collector_does_not_walk_it() -> None:
    replies = KeptReplies()
    for i in range(100):
        replies.put(reply(str(i)))
    assert not gc.is_tracked(replies._by_key)
    assert not gc.is_tracked(replies._keys)
    assert not gc.is_tracked(replies.find(Keyed("7", DIGEST)))
