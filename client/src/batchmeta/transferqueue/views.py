"""A copy of the keys and tags of each partition, kept up to date by `since_revision`: a list costs what changed.

Tags stay the JSON that came, so that every caller gets objects of its own.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ..calls import Call, query, route
from ..errors import Compacted
from ..wire import replies, requests
from .raw_client import RawClient

_lists = msgspec.json.Decoder(replies.KeyList)
_tags = msgspec.json.Decoder(dict[str, dict[str, Any]])
_encode = msgspec.json.Encoder().encode

Line = tuple[int, bytes]
MOST = 256  # views; a run makes a partition for each of its steps


@dataclass(frozen=True, slots=True)
class View:
    """`lines`: per key its index, and its name and tags as members of a JSON object; the lowest index first.

    All changes up to `revision` are in it.
    """

    revision: int = 0
    lines: Mapping[str, Line] = field(default_factory=dict)

    def tags(self) -> dict[str, dict[str, Any]]:
        """Tags by key in the order in which the keys were made, new objects each time."""
        return _tags.decode(b"{" + b",".join([member for _, member in self.lines.values()]) + b"}")


class Views:
    """Those of one client. A view is replaced as a whole, so that callers of several threads need no lock."""

    def __init__(self) -> None:
        self._views: dict[str, View] = {}

    async def read(self, client: RawClient, partition: str) -> View:
        """The keys as they are now. Raises PartitionNotFound, PartitionCleared."""
        view = self._views.get(partition, View())
        try:
            view = await _refreshed(client, partition, view)
        except Compacted:
            view = await _refreshed(client, partition, View())
        self._remember(partition, view)
        return view

    def kept(self, partition: str, revision: int) -> View | None:
        """The view, if nothing changed since."""
        view = self._views.get(partition)
        return view if view is not None and view.revision >= revision else None

    def keep_only(self, partitions: Container[str]) -> None:
        """Drop those of partitions that are not there any more."""
        for partition in [each for each in self._views if each not in partitions]:
            self.forget(partition)

    def _remember(self, partition: str, view: View) -> None:
        self._views.pop(partition, None)  # to the end: the one read last goes last
        self._views[partition] = view
        while len(self._views) > MOST:
            self._views.pop(next(iter(self._views)), None)

    def forget(self, partition: str) -> None:
        """Drop it."""
        self._views.pop(partition, None)


async def _refreshed(client: RawClient, partition: str, view: View) -> View:
    lines: dict[str, Line] | None = None
    cursor: str | None = None
    while True:
        page = await _page(client, partition, view.revision, cursor)
        if page.keys or page.removed:
            lines = dict(view.lines) if lines is None else lines
            lines = _applied(lines, page)
        cursor = page.next_cursor
        if cursor is None:
            return View(page.revision, view.lines if lines is None else lines)


async def _page(client: RawClient, partition: str, revision: int, cursor: str | None) -> replies.KeyList:
    asked = query(requests.ListKeys(since_revision=revision, cursor=cursor))
    answer = await client.sent(Call("GET", route("partitions", partition, "keys"), query=asked))
    return _lists.decode(answer.content)


def _applied(lines: dict[str, Line], page: replies.KeyList) -> dict[str, Line]:
    for key in page.removed or ():
        lines.pop(key, None)
    last, is_sorted = next(reversed(lines.values()), (-1, b""))[0], True
    for line in page.keys:
        index, member = line.global_index, _encode(line.key) + b":" + bytes(line.custom_meta)
        if lines.get(line.key, (None,))[0] != index:
            lines.pop(line.key, None)
            is_sorted = is_sorted and index > last
            last = index
        lines[line.key] = index, member
    return lines if is_sorted else dict(sorted(lines.items(), key=lambda each: each[1][0]))
