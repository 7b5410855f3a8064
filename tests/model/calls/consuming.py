"""Claims and what becomes of them; tasks and their reset."""

from typing import Any

from app.routes import claims_render, tasks_render
from core.operations import consumption, leases
from core.operations.claim import ClaimRequest, claim_now, explain_claim
from core.operations.claim import claim as claim_until
from tests.model.calls.call import Call, members, of
from tests.model.samplers import Condition, Picker


def claim_body(wanted: ClaimRequest, picker: Picker, where: list[Condition] | None) -> dict[str, Any]:
    return members(
        fields=list(wanted.fields),
        batch_size=wanted.batch_size,
        min_batch_size=wanted.min_batch_size,
        wait_s=wanted.wait_s,
        sampler={"name": picker.name, **picker.arguments},
        expand=True,
        share_columns=wanted.view.share,
        where=where,
        ack=None if wanted.lease_s is None else "explicit",
        lease_s=wanted.lease_s,
        worker=wanted.worker,
    )


def claim(name: str, wanted: ClaimRequest, picker: Picker, where: list[Condition] | None) -> Call:
    operation = claim_until if wanted.wait_s else claim_now
    path, body = of(name, "tasks", wanted.task, "claims"), claim_body(wanted, picker, where)
    return Call("POST", path, body, operation, tasks_render.claim, (name, wanted))


def explain(name: str, wanted: ClaimRequest, picker: Picker, where: list[Condition] | None) -> Call:
    path, body = of(name, "tasks", wanted.task, "explain"), claim_body(wanted, picker, where)
    return Call("POST", path, body, explain_claim, tasks_render.explained, (name, wanted))


def reset(name: str, task: str | None) -> Call:
    path = of(name, *(("tasks", task) if task else ()), "consumption", "reset")
    return Call("POST", path, {}, consumption.reset_consumption, tasks_render.reset(name), (name, task))


def ack(claim_id: str, said: leases.Ack) -> Call:
    accept = "all" if said.accept is None else said.accept
    reject = [{"global_index": index, "reason": reason} for index, reason in said.reject]
    body = {"token": said.token, "accept": accept, "release": said.release, "reject": reject, "counts": said.counts}
    return Call("POST", f"/v1/claims/{claim_id}/ack", body, leases.ack, claims_render.acked, (claim_id, said))


def extend(claim_id: str, token: str, length_s: float) -> Call:
    body, path = {"token": token, "lease_s": length_s}, f"/v1/claims/{claim_id}/extend"
    return Call("POST", path, body, leases.extend, claims_render.extended, (claim_id, token, length_s))


def release_worker(worker: str) -> Call:
    path = f"/v1/workers/{worker}/release"
    return Call("POST", path, {}, leases.release_worker, claims_render.released_worker, (worker,))


def get_claim(claim_id: str) -> Call:
    return Call("GET", f"/v1/claims/{claim_id}", None, leases.get_claim, claims_render.seen, (claim_id,))


def list_claims(
    partition: str | None = None, task: str | None = None, worker: str | None = None, prefix: str = ""
) -> Call:
    wanted = members(partition_id=partition, task=task, worker=worker, prefix=prefix)
    path = "/v1/claims?" + "&".join(f"{name}={value}" for name, value in wanted.items())
    return Call("GET", path, None, leases.list_claims, claims_render.claims, (partition, task, worker, prefix))
