"""What every call needs: its connection, the decoding of its answer, and pages followed to their end."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Protocol, TypeVar, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ..batch import BatchMeta
from ..calls import Call
from ..errors import UnreadableReply
from ..exchange import Answer
from ..wire import replies

T = TypeVar("T")
_ints = msgspec.json.Decoder(list[int])


class Way(Protocol):
    """How calls get to the service."""

    async def send(self, call: Call) -> Answer:
        """A 2xx answer, its body read. Raises Problem, ConnectionLost."""

    def new_epoch(self) -> None:
        """The next answer's epoch is the one."""


class Base:
    """Holds the connection that the calls of the subclasses are sent through."""

    def __init__(self, connection: Way) -> None:
        self._connection = connection

    async def _answer(self, call: Call, kind: type[T]) -> T:
        return decoded(await self._connection.send(call), kind)


@contextmanager
def readable(what: str) -> Iterator[None]:
    """What cannot be decoded within is an UnreadableReply."""
    try:
        yield
    except msgspec.DecodeError as error:
        raise unreadable(what, error) from error


def unreadable(what: str, error: Exception) -> UnreadableReply:
    """The error that says that an answer is no such thing."""
    return UnreadableReply(f"the answer is no {what}: {error}")


def decoded(answer: Answer, kind: type[T]) -> T:
    """The body as `kind`."""
    try:
        return cast("T", _decoder(cast("Any", kind)).decode(answer.content))
    except msgspec.DecodeError as error:
        raise unreadable(kind.__name__, error) from error


@cache
def _decoder(kind: type[Any]) -> "msgspec.json.Decoder[Any]":
    return msgspec.json.Decoder(kind)


def decoded_raw(raw: Raw, decoder: "msgspec.json.Decoder[T]") -> T:
    """A part of a body that stayed JSON."""
    try:  # a contextmanager takes longer than most parts
        return decoder.decode(raw)
    except msgspec.DecodeError as error:
        raise unreadable("part of one", error) from error


def ints(raw: Raw) -> list[int]:
    """An array of indexes or bits."""
    return decoded_raw(raw, _ints)


def batch_of(reply: replies.BatchMeta) -> BatchMeta:
    """The batch of a reply body."""
    try:
        return BatchMeta.from_wire(reply)
    except msgspec.DecodeError as error:
        raise unreadable("batch meta", error) from error


async def pages(
    fetch: Callable[[str | None], Awaitable[T]], cursor_of: Callable[[T], str | UnsetType | None]
) -> list[T]:
    """All pages of a listing, the first one fetched with the cursor None."""
    found = [await fetch(None)]
    while (cursor := cursor_of(found[-1])) is not None and cursor is not UNSET:
        found.append(await fetch(cursor))
    return found
