"""`Service`: the HTTP client of one TransferQueue client, and what it remembers. Its calls name partitions as users do.

What the service may not offer yet stands behind one small method each.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

from ..batch import BatchMeta
from ..errors import PartitionConflict
from ..retries import Retries
from ..wire.replies import ClearLine
from ..wire.requests import Include
from .known_fields import KnownFields
from .names import SEPARATOR, name_of, theirs_of
from .raw_client import RawClient
from .settings import Settings
from .views import Views


class Service:
    """Connections are kept per event loop and process, so any thread, loop or forked child may call."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        retries = Retries(within_s=settings.patience_s)
        self.client = RawClient(settings.url, timeout=settings.timeout_s, retries=retries)
        self.views = Views()
        self.fields = KnownFields()
        self.unfinished: dict[str, None] = {}  # ids of clears whose bytes could not be deleted yet
        self._prefix = f"{name_of(settings.job)}{SEPARATOR}" if settings.job else ""
        self._expecting: set[str] = set()

    def partition(self, theirs: str) -> str:
        """The id of a partition."""
        return self._prefix + name_of(theirs)

    def task(self, theirs: str) -> str:
        """The id of a task."""
        return name_of(theirs)

    def owns(self, partition: str) -> bool:
        """The id is of one of the job's partitions."""
        return partition.startswith(self._prefix)

    def theirs(self, partition: str) -> str:
        """TransferQueue's name of the partition with this id."""
        return theirs_of(partition[len(self._prefix) :])

    async def partitions(self) -> list[tuple[str, str, int]]:
        """Name, id and revision of the job's partitions, in the order they were made."""
        lines = await self.client.partitions(self._prefix or None)
        return [(self.theirs(line.partition_id), line.partition_id, line.revision) for line in lines]

    async def pending_clears(self) -> list[ClearLine]:
        """Those of the job's partitions, oldest first."""
        return await self.client.clears("pending", prefix=self._prefix or None)

    async def insert(
        self,
        partition: str,
        *,
        count: int | None = None,
        keys: Sequence[str] | None = None,
        tags: Sequence[Mapping[str, Any] | None] | None = None,
        include: Sequence[Include],
    ) -> BatchMeta:
        """Rows for these keys, or `count` new ones; members of the tags replace those of the same name."""
        await self._expect(partition)
        mode = UPDATE if tags is not None else "merge"
        return await self.client.insert(
            partition, count=count, keys=keys, custom_meta=tags, custom_meta_mode=mode, include=include, compact=True
        )

    async def update_tags(self, partition: str, global_indexes: Sequence[int], tags: Sequence[Any]) -> None:
        """Members of the tags replace those of the same name."""
        await self.client.patch_custom_meta(partition, tags, global_indexes=global_indexes, custom_meta_mode=UPDATE)

    def forget(self, partition: str) -> None:
        """The partition was deleted: one of its name is a new one."""
        self._expecting.discard(partition)
        self.views.forget(partition)
        self.fields.forget(partition)

    def restart(self) -> None:
        """The service went back to a checkpoint: nothing that was remembered holds."""
        self.views, self.fields = Views(), KnownFields()
        self.unfinished.clear()
        self._expecting.clear()

    async def close(self) -> None:
        """Close the connections of this loop; calls after it are a RuntimeError."""
        await self.client.aclose()

    async def _expect(self, partition: str) -> None:
        """Tell the service once how many samples a partition expects, where TQ_PRE_ALLOC_SAMPLE_NUM says it."""
        expected = self.settings.expected_samples
        if expected is None or partition in self._expecting:
            return
        with suppress(PartitionConflict):  # somebody gave it other settings on purpose
            await self.client.put_partition(partition, expected_samples=expected)
        self._expecting.add(partition)


UPDATE: Literal["update"] = "update"  # as TransferQueue: `dict.update`, and None is a value
PLAIN: tuple[Include, ...] = ("field_schema", "custom_meta", "field_status")
EVERYTHING: tuple[Include, ...] = ("field_schema", "custom_meta", "backend_meta", "field_status")
