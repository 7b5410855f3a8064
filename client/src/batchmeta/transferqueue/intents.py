"""What a call of TransferQueue's interface is about to do, for the calls of its client that it makes.

`kv_put` makes three calls of the client. Each of ours sees here what the next ones will say, so that the service is
asked once. Context variables follow the call into other loops, threads and tasks.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from msgspec import Raw

from ..columns import METAS, Array, Column
from ..json_values import encoded
from ..lazy_columns import Encoded
from ..values import Clear
from .errors import BadCall
from .names import check_fields

LARGEST = 65_536  # bytes: the service's limits.max_cell_bytes


@dataclass
class KvPut:
    """`tags`: one per key, or None. `fields`: names of the data that follows; None: none follows.

    `column`: the tags as JSON. `is_sent`: they are with the service.
    """

    tags: Sequence[Mapping[str, Any]] | None
    fields: Sequence[str] | None
    column: Column[Any] | None = None
    is_sent: bool = False

    def check(self, rows: int) -> None:
        """Refuse what the service would refuse once the bytes are written, with the error that says so."""
        check_fields(self.fields or ())
        if self.tags is None:
            return
        if len(self.tags) != rows:
            raise ValueError(f"keys with length {rows} does not match length of tags {len(self.tags)}")
        self.column = tag_column(self.tags)


@dataclass
class KvGet:
    """`fields`: those asked for, or None for all."""

    fields: Sequence[str] | None


@dataclass
class KvClear:
    """`plans`: the clear of the keys, planned where TransferQueue looks them up."""

    plans: list[Clear] = field(default_factory=list)


@dataclass
class DataPut:
    """One `async_put`. `tags`: one per sample, to go with the report of its data; None: nothing to say.

    `partitions`: those of the samples, by index, where they are several. `reported`: indexes whose tags are sent.
    """

    global_indexes: Sequence[int] = ()
    tags: Column[Any] | None = None
    partitions: Mapping[int, str] | None = None
    reported: set[int] = field(default_factory=set)

    def tags_of(self, rows: Sequence[int]) -> Column[Any] | None:
        """The tags of these samples."""
        if self.tags is None or rows == self.global_indexes:
            return self.tags
        places = {row: place for place, row in enumerate(self.global_indexes)}
        return self.tags.take([places[row] for row in rows])


KV: ContextVar[KvPut | KvGet | KvClear | None] = ContextVar("batchmeta_kv", default=None)
DATA: ContextVar[DataPut | None] = ContextVar("batchmeta_data", default=None)


@contextmanager
def intending(intent: KvPut | KvGet | KvClear) -> Iterator[None]:
    """The calls made within are parts of this one."""
    token = KV.set(intent)
    try:
        yield
    finally:
        KV.reset(token)


@contextmanager
def putting(data: DataPut) -> Iterator[None]:
    """The reports of data made within are of this put."""
    token = DATA.set(data)
    try:
        yield
    finally:
        DATA.reset(token)


def tag_column(tags: Sequence[Mapping[str, Any]]) -> Column[Any]:
    """The tags as JSON; TypeError or ValueError names what is none, or is too large for the service."""
    body = encoded(list(tags), "tags")
    if len(body) > LARGEST:
        _check_sizes(tags)
    return Array(Encoded(Raw(body), len(tags), METAS.array))


def _check_sizes(tags: Sequence[Mapping[str, Any]]) -> None:
    for place, tag in enumerate(tags):
        size = len(encoded(tag))
        if size > LARGEST:
            raise BadCall(f"tags[{place}] has {size:,} bytes as JSON, and a sample's tags have at most {LARGEST:,}")
