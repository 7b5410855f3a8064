"""The key list since a revision as the contract has it, over HTTP: changes in order, removals, pages, and waiting."""

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.conftest import ServerProcess

from .service import Api, Json, refused
from .test_waiting import client, settled


def changes(api: Api, since: int, more: str = "") -> Json:
    return api.ok("GET", f"keys?since_revision={since}{more}")


def told(page: Json) -> tuple[list[str], list[str]]:
    """(keys listed, keys removed)."""
    return [line["key"] for line in page["keys"]], page["removed"]


def patch(api: Api, key: str, **meta: Any) -> int:
    revision: int = api.ok("PATCH", "custom-meta", {"keys": [key], "custom_meta": [meta]})["revision"]
    return revision


async def waiting(http: httpx.AsyncClient, api: Api, since: int, more: str = "") -> "asyncio.Task[httpx.Response]":
    """A call that waits for a change."""
    address = f"{api.path}/keys?since_revision={since}&wait_s=60{more}"
    task = asyncio.create_task(http.get(address))
    await settled(http, api.path, task)
    return task


def test_what_changed_is_listed_in_the_order_of_the_changes(api: Api) -> None:
    first = api.insert("a", "b", "c")[0]
    start = api.ok("GET", "")["revision"]
    last = patch(api, "c", v=1)
    api.produce(["a"], "n")
    page = changes(api, start)
    assert told(page) == (["c", "a"], [])
    assert page["revision"] == last + 1
    assert page["keys"][0] == {"key": "c", "global_index": first + 2, "custom_meta": {"v": 1}, "revision": last}
    assert told(changes(api, last)) == (["a"], [])
    assert changes(api, page["revision"]) == page | {"keys": []}
    assert told(changes(api, 0)) == (["b", "c", "a"], [])
    assert "removed" not in api.ok("GET", "keys")


def test_keys_that_left_are_removed_and_those_made_anew_are_listed(api: Api) -> None:
    api.insert("a", "b", "c")
    start = api.ok("GET", "")["revision"]
    api.ok("POST", "samples/delete", {"keys": ["a", "c"]})
    api.insert("c")
    assert told(changes(api, start)) == (["c"], ["a"])
    assert told(changes(api, start, "&prefix=c")) == (["c"], [])
    timed = api.ok("POST", "samples", {"keys": ["d"], "ttl_s": 0.05})["revision"]
    assert told(changes(api, timed, "&wait_s=60")) == ([], ["d"])


def test_pages_go_on_from_a_cursor_or_from_their_revision(api: Api) -> None:
    api.insert("a", "b")
    start = api.ok("GET", "")["revision"]
    api.insert("c", "d", "e")
    api.ok("POST", "samples/delete", {"keys": ["a"]})
    page = changes(api, start, "&limit=2")
    assert (told(page), page["revision"]) == ((["c", "d"], []), start)
    rest = changes(api, start, f"&limit=2&cursor={page['next_cursor']}")
    assert (told(rest), rest["next_cursor"], rest["revision"]) == ((["e"], ["a"]), None, start + 2)
    page = changes(api, start, "&limit=3")
    assert (told(page), page["revision"]) == ((["c", "d", "e"], []), start + 1)
    assert told(changes(api, page["revision"])) == ([], ["a"])


WHERE = "&where=" + quote('[{"path": "v", "op": ">=", "value": 5}]')


def test_what_fulfils_where_no_longer_is_removed_and_what_never_did_is_not_told(api: Api) -> None:
    metas = [{"v": 9}, {"v": 1}, {"v": 9}, {"v": 2}, {"v": 7}]
    start = api.ok("POST", "samples", {"keys": ["a", "b", "c", "d", "e"], "custom_meta": metas})["revision"]
    assert told(changes(api, 0, WHERE)) == (["a", "c", "e"], [])
    patch(api, "a", v=2)
    patch(api, "b", v=3)
    patch(api, "e", w=1)
    api.ok("POST", "samples/delete", {"keys": ["c", "d"]})
    assert told(changes(api, start, WHERE)) == (["e"], ["a", "c"])
    assert told(changes(api, start, f"{WHERE}&prefix=c")) == ([], ["c"])
    later = api.ok("GET", "")["revision"]
    api.ok("POST", "samples/delete", {"keys": ["a", "b"]})
    assert told(changes(api, later, WHERE)) == ([], [])


@pytest.mark.asyncio
async def test_a_call_waits_for_a_change_that_matches(api: Api) -> None:
    api.insert("a", "b", custom_meta=[{"v": 9}, {"v": 1}])
    start = api.ok("GET", "")["revision"]
    async with client(api.url) as http:
        task = await waiting(http, api, start, WHERE)
        patch(api, "b", v=2)
        api.produce(["b"], "n")
        api.ok("POST", "samples/delete", {"keys": ["b"]})
        await settled(http, api.path, task)
        revision = patch(api, "a", v=3)
        reply = (await asyncio.wait_for(task, 30)).json()
    assert (told(reply), reply["revision"]) == (([], ["a"]), revision)


def test_clearing_is_leaving_and_an_abort_a_change(api: Api) -> None:
    api.insert("a", "b")
    start = api.ok("GET", "")["revision"]
    kept, gone = (api.ok("POST", "clears", {"keys": [key]})["clear_id"] for key in "ab")
    assert told(changes(api, start)) == ([], ["a", "b"])
    api.ok("POST", f"/v1/clears/{kept}/abort")
    api.ok("POST", f"/v1/clears/{gone}/commit")
    assert told(changes(api, start)) == (["a"], ["b"])


def test_a_revision_of_a_partition_before_this_one_is_too_old(api: Api) -> None:
    api.insert("a")
    seen = api.ok("GET", "")["revision"]
    deleted = api.ok("DELETE", "")["revision"]
    refused(api.send("GET", f"keys?since_revision={seen}"), 410, "partition-cleared")
    api.insert("b")
    refused(api.send("GET", f"keys?since_revision={seen}"), 410, "compacted", "not known any more", "since_revision=0")
    assert told(changes(api, 0)) == (["b"], [])  # whoever has no copy
    assert told(changes(api, deleted)) == (["b"], [])
    refused(api.send("GET", "/v1/partitions/never-there/keys?since_revision=0"), 404, "partition-not-found")


@pytest.mark.asyncio
async def test_a_call_waits_for_a_change_of_its_keys_and_for_no_other(api: Api) -> None:
    api.produce(["a1", "b1"], "n")
    start = api.ok("GET", "")["revision"]
    async with client(api.url) as http:
        task = await waiting(http, api, start, "&prefix=a")
        patch(api, "b1", v=1)
        api.ok("POST", "samples", {"count": 1})
        api.claim("n")
        await settled(http, api.path, task)
        revision = patch(api, "a1", v=2)
        reply = (await asyncio.wait_for(task, 30)).json()
    assert (told(reply), reply["revision"]) == ((["a1"], []), revision)


@pytest.mark.asyncio
async def test_a_removal_is_a_change_and_the_end_of_the_partition_is_the_end(api: Api) -> None:
    api.insert("a", "b")
    start = api.ok("GET", "")["revision"]
    async with client(api.url) as http:
        task = await waiting(http, api, start)
        api.ok("POST", "samples/delete", {"keys": ["b"]})
        assert told((await asyncio.wait_for(task, 30)).json()) == ([], ["b"])
        task = await waiting(http, api, start + 1)
        api.ok("DELETE", "")
        refused(await asyncio.wait_for(task, 30), 410, "partition-cleared")


def test_at_the_deadline_the_answer_is_empty(api: Api) -> None:
    api.insert("a")
    start = api.ok("GET", "")["revision"]
    page = changes(api, start, "&wait_s=0.05")
    assert (told(page), page["revision"], page["next_cursor"]) == (([], []), start, None)


def test_after_a_restart_it_tells_the_same(tmp_path: Path) -> None:
    journal = f"file://{tmp_path}/journal"
    server = ServerProcess("--journal", journal)
    api = Api(server.url)
    with api.http:
        api.insert("a", "b")
        start = api.ok("GET", "")["revision"]
        patch(api, "a", v=1)
        api.ok("POST", "samples/delete", {"keys": ["b"]})
        before = changes(api, start)
    assert server.kill() != 0
    server = ServerProcess("--journal", journal)
    again = Api(server.url)
    again.name, again.path = api.name, api.path
    with again.http:
        assert changes(again, start) == before
        assert told(before) == (["a"], ["b"])
    assert server.stop() == 0
