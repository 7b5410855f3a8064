"""Renders replies about claims with a lease: acks, extended leases, lists of claims, released workers."""

from batchmeta.wire import replies
from core.operations.leases import Acked, SeenClaim

from ..reply import Reply, reply


def acked(result: Acked) -> Reply:
    """How many rows were accepted, released and rejected, and how many are still open."""
    return reply(
        replies.Acked(
            partition_id=result.partition_id,
            revision=result.revision,
            accepted=result.accepted,
            released=result.released,
            rejected=result.rejected,
            open=result.open,
        )
    )


def extended(found: SeenClaim) -> Reply:
    """How many rows are open, and for how long."""
    return reply(replies.ExtendedLease(open=found.open, expires_in_s=found.expires_in_s))


def _seen(found: SeenClaim) -> replies.ClaimSeen:
    lease = found.lease
    return replies.ClaimSeen(
        claim_id=lease.claim_id,
        partition_id=lease.partition_id,
        task=lease.task,
        worker=lease.worker,
        open=found.open,
        attempt=int(lease.attempts.max(initial=0)),
        age_s=found.age_s,
        expires_in_s=found.expires_in_s,
    )


def seen(found: SeenClaim) -> Reply:
    """One claim, without its token."""
    return reply(_seen(found))


def claims(found: list[SeenClaim]) -> Reply:
    """A list of claims, without their tokens."""
    return reply(replies.ClaimList(claims=[_seen(one) for one in found]))


def released_worker(result: tuple[int, list[str]]) -> Reply:
    """How many rows of which claims are free again."""
    return reply(replies.ReleasedWorker(released=result[0], claims=result[1]))
