"""Claims by samplers with memory, against the model: the answer for a known key, and the entry made for a new one."""

from dataclasses import replace
from typing import Any

from core.operations.claim import ClaimRequest
from core.state.leases import number_of
from tests.model.by_rank import ByRank
from tests.model.memory import Allotment, Fetch, Share, Terms, Told, told
from tests.model.plain import Partition
from tests.model.samplers import Picker
from tests.model.tasks import Task


def terms(wanted: ClaimRequest, picker: ByRank) -> Terms:
    ack = "on_dispatch" if wanted.lease_s is None else "explicit"
    return Terms(frozenset(wanted.fields), wanted.batch_size, ack, picker.said_once)


def fits(picker: ByRank, task: Task) -> bool:
    """Its key is known, and of a size that it could ask for."""
    kept = task.memory.get(picker.key)
    return kept is not None and kept.terms.size % picker.n == 0


def in_words_of(terms: Terms, wanted: ClaimRequest) -> ClaimRequest:
    """The same claim under these terms."""
    fields = tuple(sorted(terms.fields))
    lease_s = None if terms.ack == "on_dispatch" else wanted.lease_s or 5.0
    return replace(
        wanted,
        fields=fields,
        batch_size=terms.size,
        min_batch_size=min(wanted.min_batch_size, terms.size),
        lease_s=lease_s,
    )


def known(partition: Partition | None, wanted: ClaimRequest, picker: Picker) -> Told | None:
    """What this claim is told of its key; None: nothing is remembered under it."""
    task = partition.tasks.get(wanted.task, Task()) if partition else Task()
    if partition is None or not isinstance(picker, ByRank) or picker.key not in task.memory:
        return None
    kept = task.memory[picker.key]
    found = told(partition, task, kept.shares[picker.place], kept.terms.fields)
    if kept.terms != terms(wanted, picker):
        return Told({"invalid-request", *found.codes})
    return found


def first_fetch(wanted: ClaimRequest, picker: ByRank, split: list[list[int]]) -> Fetch:
    """A key that was new: these are the shares of its ranks."""
    made = Allotment(terms(wanted, picker), [Share(indexes, picker.n) for indexes in split])
    return Fetch(picker.key, picker.place, made)


def check_replay(body: Any, found: Told, now: float) -> None:
    """The claim that has the rows already, as it is now."""
    info, lease = body["claim"], found.lease
    assert number_of(info["claim_id"]) == found.claim
    if lease is None:
        assert (info["ack"], info.get("token")) == ("on_dispatch", None)
        return
    assert (info["ack"], info["token"], info["worker"]) == ("explicit", lease.token, lease.worker)
    assert info["expires_in_s"] == (lease.deadline - now if lease.open else 0.0)
    assert info["attempts"] == list(lease.attempts.values())
    assert info["attempt"] == max(lease.attempts.values(), default=0)
