"""Reads: batch meta, backend meta, status, keys, consumption, the dead."""

import json
from collections.abc import Sequence
from urllib.parse import quote

from app.routes import batch_meta_render, production_render, samples_render, tasks_render
from core.operations import changes as following
from core.operations import consumption, leases, read
from core.reading.batch import View
from core.reading.selectors import Selector
from tests.core.world import ALL_PARTS, MANY
from tests.model.calls.call import PAGE, Call, conditions, members, of, selected, selector
from tests.model.said import Chosen
from tests.model.samplers import Condition


def batch(
    name: str, indexes: Sequence[int] | None, fields: Sequence[str] | None, compact: bool, share: bool = False
) -> Call:
    how = {"expand": True, "compact": compact}
    body = members(global_indexes=indexes, fields=fields, include=sorted(ALL_PARTS), share_columns=share, **how)
    view = View(None if fields is None else tuple(fields), ALL_PARTS, share=share, **how)
    arguments = (name, Selector(indexes), view, False, MANY, None)
    return Call("POST", of(name, "batch-meta"), body, read.read, batch_meta_render.page, arguments)


def batch_of(name: str, chosen: Chosen) -> Call:
    """Only which rows are meant."""
    body = selected(chosen) | {"fields": [], "include": []}
    arguments = (name, selector(chosen), View((), frozenset()), False, MANY, None)
    return Call("POST", of(name, "batch-meta"), body, read.read, batch_meta_render.page, arguments)


def backend_meta(name: str, indexes: Sequence[int], fields: Sequence[str] | None) -> Call:
    body = members(global_indexes=indexes, fields=fields, expand=True)
    view = View(None if fields is None else tuple(fields), expand=True)
    arguments = (name, Selector(indexes), view, MANY, None)
    return Call(
        "POST", of(name, "backend-meta"), body, read.read_backend_meta, production_render.backend_meta, arguments
    )


def statuses(name: str, fields: Sequence[str]) -> Call:
    path = f"{of(name, 'production')}?fields={','.join(fields)}&limit={PAGE}"
    return Call(
        "GET", path, None, read.read_production, production_render.production, (name, tuple(fields), PAGE, None)
    )


def keys(name: str, prefix: str, where: list[Condition] | None = None) -> Call:
    path = f"{of(name, 'keys')}?prefix={prefix}&limit={PAGE}"
    path += f"&where={quote(json.dumps(where))}" if where else ""
    return Call(
        "GET", path, None, read.list_keys, samples_render.key_list, (name, prefix, PAGE, None, conditions(where))
    )


def changes(
    name: str,
    since: int,
    wait_s: float,
    limit: int = PAGE,
    cursor: str | None = None,
    where: list[Condition] | None = None,
) -> Call:
    path = f"{of(name, 'keys')}?since_revision={since}&limit={limit}"
    path += (f"&wait_s={wait_s}" if wait_s else "") + (f"&cursor={cursor}" if cursor else "")
    path += f"&where={quote(json.dumps(where))}" if where else ""
    asked = following.ChangesRequest(since, "", conditions(where), limit, cursor)
    if wait_s:
        return Call("GET", path, None, following.await_changes, samples_render.key_changes, (name, asked, wait_s))
    return Call("GET", path, None, following.list_changes, samples_render.key_changes, (name, asked))


def lookup(name: str, indexes: list[int]) -> Call:
    body = {"global_indexes": indexes}
    return Call("POST", of(name, "keys", "lookup"), body, read.lookup_keys, samples_render.found_keys, (name, indexes))


def consumption_of(name: str, task: str) -> Call:
    path = f"{of(name, 'tasks', task, 'consumption')}?limit={PAGE}"
    operation, shown = consumption.read_consumption, tasks_render.consumption
    return Call("GET", path, None, operation, shown, (name, task, False, PAGE, None))


def dead(name: str, task: str) -> Call:
    return Call("GET", of(name, "tasks", task, "dead"), None, leases.list_dead, tasks_render.dead, (name, task))
