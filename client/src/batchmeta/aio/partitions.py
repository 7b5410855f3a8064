"""Calls about whole partitions, and about the service itself."""

from collections.abc import Mapping
from typing import Any

from ..arguments import maybe, real, text, whole
from ..calls import Call, change, encode, header, patience, query, route
from ..errors import NotReady
from ..schema import wire_schemas
from ..values import Tagged
from ..wire import replies, requests
from .base import Base, decoded, pages


class PartitionCalls(Base):
    """Partitions are named sets of samples of one kind, e.g. `train@step_12`."""

    async def put_partition(
        self,
        partition_id: str,
        *,
        expected_samples: int | None = None,
        max_samples: int | None = None,
        max_attempts: int | None = None,
        fields: Mapping[str, Mapping[str, Any]] | None = None,
        idempotency_key: str | None = None,
    ) -> replies.Partition:
        """Make a partition, or give settings to one that has none yet; the same settings twice are no change.

        `fields` declares schemas, e.g. `{"ids": {"dtype": "int64", "ragged": True}}`; `shape` may be left out.
        A deleted one is made anew. Raises PartitionConflict if it has other settings.
        """
        body = requests.PutPartition(
            expected_samples=maybe(whole, expected_samples, "expected_samples"),
            max_samples=maybe(whole, max_samples, "max_samples"),
            max_attempts=maybe(whole, max_attempts, "max_attempts"),
            fields=maybe(wire_schemas, fields, "fields"),
        )
        call = change("PUT", route("partitions", partition_id), idempotency_key, body=encode(body))
        return await self._answer(call, replies.Partition)

    async def patch_partition(
        self,
        partition_id: str,
        *,
        expected_samples: int | None = None,
        max_samples: int | None = None,
        max_attempts: int | None = None,
        idempotency_key: str | None = None,
    ) -> replies.Partition:
        """Change settings; None leaves one as it is. Raises PartitionNotFound, PartitionCleared, PartitionSealed."""
        body = requests.PatchPartition(
            expected_samples=maybe(whole, expected_samples, "expected_samples"),
            max_samples=maybe(whole, max_samples, "max_samples"),
            max_attempts=maybe(whole, max_attempts, "max_attempts"),
        )
        call = change("PATCH", route("partitions", partition_id), idempotency_key, body=encode(body))
        return await self._answer(call, replies.Partition)

    async def seal(self, partition_id: str, *, idempotency_key: str | None = None) -> replies.Partition:
        """No more samples: waiting claims get the last rows once all are ready, and tasks can be `done`.

        Again: no change. Raises PartitionNotFound, PartitionCleared.
        """
        call = change("POST", route("partitions", partition_id, "seal"), idempotency_key, body=encode(requests.Empty()))
        return await self._answer(call, replies.Partition)

    async def partition(
        self,
        partition_id: str,
        *,
        revision: int | None = None,
        wait_s: float = 0.0,
    ) -> replies.Partition:
        """Settings, counts, fields and tasks of a partition. Raises PartitionNotFound, PartitionCleared.

        With `revision`, waits up to `wait_s` (0 to 60 seconds) until the partition is past it.
        """
        waited = real(wait_s, "wait_s")
        asked = query(requests.PartitionQuery(revision=maybe(whole, revision, "revision"), wait_s=waited or None))
        call = Call("GET", route("partitions", partition_id), query=asked, wait_s=patience(waited))
        return await self._answer(call, replies.Partition)

    async def tagged_partition(self, partition_id: str) -> Tagged:
        """As `partition`, with the ETag that `delete_partition(if_match=…)` takes."""
        answer = await self._connection.send(Call("GET", route("partitions", partition_id)))
        return Tagged(decoded(answer, replies.Partition), answer.headers.get("ETag", ""))

    async def partitions(self, prefix: str | None = None) -> list[replies.PartitionLine]:
        """All partitions (whose name begins with `prefix`) in the order of their creation."""

        begins = maybe(text, prefix, "prefix")

        async def fetch(cursor: str | None) -> replies.Partitions:
            asked = query(requests.ListPartitions(prefix=begins, cursor=cursor))
            return await self._answer(Call("GET", route("partitions"), query=asked), replies.Partitions)

        return [line for page in await pages(fetch, lambda page: page.next_cursor) for line in page.partitions]

    async def delete_partition(
        self, partition_id: str, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> replies.DeletedPartition:
        """Delete a partition and its samples; `cleared_samples` is 0 where there was none.

        `if_match`: only if its ETag still is this one, else PreconditionFailed.
        """
        headers = {} if if_match is None else {"If-Match": header(if_match, "if_match")}
        call = change("DELETE", route("partitions", partition_id), idempotency_key, headers=headers)
        return await self._answer(call, replies.DeletedPartition)

    async def server(self) -> replies.Server:
        """Version, durability, epoch, revision and limits of the service."""
        return await self._answer(Call("GET", route("server")), replies.Server)

    async def ready(self) -> bool:
        """Does the service take calls now? One look, no retries; ConnectionLost if nobody answers."""
        try:
            await self._connection.send(Call("GET", "/readyz", resend=False))
        except NotReady:
            return False
        return True
