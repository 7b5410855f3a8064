"""Clears: plan, commit, abort; one, and a list."""

from app.routes import clears_render
from core.operations import clears
from tests.model.calls.call import PAGE, Call, conditions, of, selected, selector
from tests.model.said import Chosen


def plan_clear(name: str, chosen: Chosen, with_tombstones: bool) -> Call:
    body = selected(chosen) | {"all": chosen.everything, "tombstone": with_tombstones, "expand": True}
    wanted = clears.ClearRequest(selector(chosen), chosen.everything, conditions(chosen.where), with_tombstones)
    return Call("POST", of(name, "clears"), body, clears.plan_clear, clears_render.planned_clear, (name, wanted, True))


def commit_clear(clear_id: str) -> Call:
    path = f"/v1/clears/{clear_id}/commit"
    return Call("POST", path, {}, clears.commit_clear, clears_render.committed_clear, (clear_id,))


def abort_clear(clear_id: str) -> Call:
    return Call(
        "POST", f"/v1/clears/{clear_id}/abort", {}, clears.abort_clear, clears_render.aborted_clear, (clear_id,)
    )


def get_clear(clear_id: str) -> Call:
    path = f"/v1/clears/{clear_id}?expand=true"
    return Call("GET", path, None, clears.get_clear, clears_render.clear, (clear_id, True))


def list_clears(state: str | None = None, prefix: str = "") -> Call:
    path = f"/v1/clears?limit={PAGE}&prefix={prefix}" + (f"&state={state}" if state else "")
    return Call("GET", path, None, clears.list_clears, clears_render.clears, (state, prefix, PAGE, None))
