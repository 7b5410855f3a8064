"""Routes of claims with a lease: acks, more time, who holds what."""

from collections.abc import Awaitable

from batchmeta.wire import replies
from batchmeta.wire.requests import AckClaim, Empty, ExtendClaim, ListClaims
from core.names import check_name, check_prefix
from core.operations import leases
from core.operations.leases import Ack

from ..contract import Routes
from ..incoming import Incoming
from ..reply import Reply
from . import claims_render as render

routes = Routes("claims")
_CLAIM = "/v1/claims/{claim_id}"
_SEEN = {
    "claim_id": "c3",
    "partition_id": "train@step_0",
    "task": "actor_update",
    "worker": "actor-0",
    "open": 2,
    "attempt": 1,
    "age_s": 12.5,
    "expires_in_s": 587.5,
}


@routes.route(
    "POST",
    f"{_CLAIM}/ack",
    AckClaim,
    {200: replies.Acked},
    errors=("claim-not-found", "lease-lost"),
    example={"token": "k3JxUQm1Ym5eTtLp", "accept": [0], "reject": [{"global_index": 1, "reason": "empty answer"}]},
    reply_example={
        "partition_id": "train@step_0",
        "revision": 4,
        "accepted": 1,
        "released": 0,
        "rejected": 1,
        "open": 0,
    },
)
def ack(call: Incoming, body: AckClaim) -> Awaitable[Reply]:
    """Ack: say what became of a claim's samples.

    Accepted ones are consumed and never come again for this task; released ones come again; rejected ones are dead.
    Nothing named: all are accepted; `"all"`: those still open and not named elsewhere. Said again, the answer is the
    same. A lease that has ended: 409 naming the samples, and nothing is done; so is `"all"` once nothing is open,
    unless this token settled every sample. Claims of a group sampler settle by whole groups.

    A release takes its attempt back, so that it never makes a sample dead; with `"counts": true` the attempt stays.
    """
    return call.engine(leases.ack, render.acked, call.claim_id, _ack(body))


def _ack(body: AckClaim) -> Ack:
    is_bare = body.accept is None and body.release is None and body.reject is None
    accept = None if is_bare or body.accept == "all" else body.accept or ()
    rejected = [(row.global_index, row.reason) for row in body.reject or ()]
    return Ack(body.token, accept, body.release or (), rejected, bool(body.counts))


@routes.route(
    "POST",
    f"{_CLAIM}/extend",
    ExtendClaim,
    {200: replies.ExtendedLease},
    errors=("claim-not-found", "lease-lost"),
    example={"token": "k3JxUQm1Ym5eTtLp", "lease_s": 600},
    reply_example={"open": 2, "expires_in_s": 600.0},
)
def extend(call: Incoming, body: ExtendClaim) -> Awaitable[Reply]:
    """Extend a lease: it ends `lease_s` seconds from now."""
    return call.engine(leases.extend, render.extended, call.claim_id, body.token, body.lease_s)


@routes.route("GET", "/v1/claims", ListClaims, {200: replies.ClaimList}, reply_example={"claims": [_SEEN]})
def list_claims(call: Incoming, query: ListClaims) -> Awaitable[Reply]:
    """Open claims with a lease, oldest first: of a partition, a task, a worker where named.

    `prefix` keeps those of partitions whose name starts with it.
    """
    for member in ("partition_id", "task", "worker"):
        if (name := getattr(query, member)) is not None:
            check_name(name, f"query.{member}")
    prefix = query.prefix or ""
    check_prefix(prefix, "query.prefix")
    return call.engine(leases.list_claims, render.claims, query.partition_id, query.task, query.worker, prefix)


@routes.route("GET", _CLAIM, Empty, {200: replies.ClaimSeen}, errors=("claim-not-found",), reply_example=_SEEN)
def get_claim(call: Incoming, query: Empty) -> Awaitable[Reply]:
    """One claim with a lease; the last 10,000 closed ones are remembered, with `open: 0`."""
    return call.engine(leases.get_claim, render.seen, call.claim_id)


@routes.route(
    "POST",
    "/v1/workers/{worker}/release",
    Empty,
    {200: replies.ReleasedWorker},
    example={},
    reply_example={"released": 2, "claims": ["c3"]},
)
def release_worker(call: Incoming, body: Empty) -> Awaitable[Reply]:
    """A worker died: its leases end now as if their time was up, and its samples go out again.

    The hand-outs count as attempts, because a sample may have been what killed it.
    """
    return call.engine(leases.release_worker, render.released_worker, call.path_params["worker"])
