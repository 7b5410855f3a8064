"""Calls about claims with a lease: say what became of their rows, ask for more time, see who holds what."""

from collections.abc import Iterable, Mapping
from typing import Literal, cast

from ..arguments import flag, maybe, real, refuse, text, whole
from ..calls import Call, change, encode, indexes, query, route
from ..wire import replies, requests
from .base import Base


class LeaseCalls(Base):
    """A lease ends when its rows are settled, its time is up, or its rows are gone; then every call is LeaseLost."""

    async def ack(
        self,
        claim_id: str,
        token: str,
        *,
        accept: Iterable[int] | Literal["all"] | None = None,
        release: Iterable[int] | None = None,
        reject: Mapping[int, str] | None = None,
        counts: bool = False,
        idempotency_key: str | None = None,
    ) -> replies.Acked:
        """Settle rows of a claim, by index: accepted ones are consumed, released ones go out again, rejected are dead.

        Nothing named: all are accepted; "all": those still open and not named elsewhere. `reject`: reasons by index.
        A release takes back the attempt that the hand-out was; with `counts` it stays one of the row's `max_attempts`.
        Said again, the answer is the same; "all" again only if this token settled every row.
        Raises ClaimNotFound, LeaseLost (with the rows), InvalidRequest.
        """
        given = [{"global_index": index, "reason": reason} for index, reason in rejected(reject).items()]
        body = requests.AckClaim(
            token=text(token, "token"),
            accept=accepted(accept),
            release=indexes(release, "release"),
            reject=cast("list[requests.Rejected] | None", given or None),
            counts=flag(counts, "counts") or None,
        )
        call = change("POST", route("claims", claim_id, "ack"), idempotency_key, body=encode(body))
        return await self._answer(call, replies.Acked)

    async def extend(
        self, claim_id: str, token: str, lease_s: float, *, idempotency_key: str | None = None
    ) -> replies.ExtendedLease:
        """The lease ends `lease_s` seconds (at most 86,400) from now. Raises ClaimNotFound, LeaseLost."""
        body = requests.ExtendClaim(token=text(token, "token"), lease_s=real(lease_s, "lease_s"))
        call = change("POST", route("claims", claim_id, "extend"), idempotency_key, body=encode(body))
        return await self._answer(call, replies.ExtendedLease)

    async def open_claims(
        self,
        *,
        partition_id: str | None = None,
        task: str | None = None,
        worker: str | None = None,
        prefix: str | None = None,
    ) -> list[replies.ClaimSeen]:
        """Open claims with a lease, oldest first: of a partition, a task, a worker where named. No tokens.

        `prefix`: only those of partitions whose name begins with it.
        """
        asked = query(
            requests.ListClaims(
                partition_id=maybe(text, partition_id, "partition_id"),
                task=maybe(text, task, "task"),
                worker=maybe(text, worker, "worker"),
                prefix=maybe(text, prefix, "prefix"),
            )
        )
        return (await self._answer(Call("GET", route("claims"), query=asked), replies.ClaimList)).claims

    async def seen_claim(self, claim_id: str) -> replies.ClaimSeen:
        """One claim with a lease, also for a while after it was closed. Raises ClaimNotFound."""
        return await self._answer(Call("GET", route("claims", claim_id)), replies.ClaimSeen)

    async def dead(self, partition_id: str, task: str) -> list[replies.DeadSample]:
        """Rows that `task` will not get again, and why. Raises PartitionNotFound, PartitionCleared."""
        path = route("partitions", partition_id, "tasks", task, "dead")
        return (await self._answer(Call("GET", path), replies.DeadList)).dead

    async def release_worker(self, worker: str, *, idempotency_key: str | None = None) -> replies.ReleasedWorker:
        """A worker died: its leases end now as if their time was up, and its rows go out again."""
        path = route("workers", worker, "release")
        call = change("POST", path, idempotency_key, body=encode(requests.Empty()))
        return await self._answer(call, replies.ReleasedWorker)


def accepted(given: Iterable[int] | Literal["all"] | None) -> list[int] | Literal["all"] | None:
    """Indexes to accept, or "all". TypeError for another text."""
    if not isinstance(given, str):
        return indexes(given, "accept")
    if given != "all":
        refuse('a list of indexes or "all"', given, "accept")
    return "all"


def rejected(given: Mapping[int, str] | None) -> dict[int, str]:
    """Reasons by index."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        refuse("a mapping from indexes to reasons", given, "reject")
    reasons = {whole(index, "reject"): reason for index, reason in given.items()}
    return {index: text(reason, f"reject[{index}]") for index, reason in reasons.items()}
