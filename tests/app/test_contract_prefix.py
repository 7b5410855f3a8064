"""`prefix` of the lists of partitions, claims and clears, as contract#prefix has it, over HTTP."""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest

from .service import Api

JOBS = ("job~", "job7~", "jöb~日", "a%b&c=d ")
Listed = Callable[..., list[str]]


class Jobs:
    """Partitions of several jobs, each with an open claim and a pending clear."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.names = [f"{job}{api.name}{part}" for job in JOBS for part in ("~train", "~val")]
        self.claims = {name: self._claim(name) for name in self.names}
        self.clears = {name: self._clear(name) for name in reversed(self.names)}

    def _claim(self, name: str) -> str:
        path = f"/v1/partitions/{quote(name)}"
        schema = {"n": {"dtype": "int64", "shape": []}}
        self.api.ok("POST", f"{path}/production", {"keys": ["a", "b"], "create": True, "field_schema": schema})
        body = {"fields": ["n"], "batch_size": 1, "ack": "explicit", "lease_s": 600}
        return str(self.api.ok("POST", f"{path}/tasks/t/claims", body)["claim"]["claim_id"])

    def _clear(self, name: str) -> str:
        return str(self.api.ok("POST", f"/v1/partitions/{quote(name)}/clears", {"keys": ["b"]})["clear_id"])

    def listed(self, what: str, prefix: str, **more: Any) -> list[Any]:
        """All lines, a page at a time where there are pages."""
        lines: list[Any] = []
        cursor: str | None = ""
        while cursor is not None:
            asked = {"prefix": prefix, **more, **({"cursor": cursor} if cursor else {})}
            page = self.api.ok("GET", f"/v1/{what}", params=asked)
            assert len(page[what]) <= more.get("limit", 10_000)
            lines += page[what]
            cursor = page.get("next_cursor")
        return lines

    def ids(self, what: str, prefix: str, **more: Any) -> list[str]:
        return [line["partition_id"] for line in self.listed(what, prefix, **more)]

    def ours(self, prefix: str) -> list[str]:
        return [name for name in self.names if name.startswith(prefix)]


@pytest.fixture(scope="module")
def jobs(server_url: str) -> Iterator[Jobs]:
    api = Api(server_url)
    with api.http:
        yield Jobs(api)


each_job = pytest.mark.parametrize("job", JOBS)


@each_job
@pytest.mark.parametrize("limit", [1, 2, 10_000])
def test_a_list_has_those_of_partitions_with_the_prefix(jobs: Jobs, job: str, limit: int) -> None:
    for prefix in (job, *jobs.ours(job), jobs.ours(job)[0] + "x"):
        meant = jobs.ours(prefix)
        assert [name for name in jobs.ids("partitions", prefix, limit=limit) if name in jobs.names] == meant
        assert [name for name in jobs.ids("claims", prefix) if name in jobs.names] == meant
        assert [name for name in jobs.ids("clears", prefix, limit=limit) if name in jobs.names] == meant[::-1]


def test_pages_are_full_whatever_else_there_is(jobs: Jobs) -> None:
    first = jobs.api.ok("GET", "/v1/clears", params={"prefix": "job~", "limit": 2})
    assert [line["partition_id"] for line in first["clears"]] == jobs.ours("job~")[::-1]
    first = jobs.api.ok("GET", "/v1/partitions", params={"prefix": "a%b&c=d ", "limit": 1})
    assert [line["partition_id"] for line in first["partitions"]] == jobs.ours("a%b&c=d ")[:1]
    assert first["next_cursor"] is not None


def test_an_empty_prefix_leaves_all(jobs: Jobs) -> None:
    for what in ("partitions", "claims", "clears"):
        assert set(jobs.ids(what, "")) >= set(jobs.names)


def test_other_filters_hold_as_well(jobs: Jobs) -> None:
    train, val = jobs.ours("job7~")
    assert jobs.ids("claims", "job7~", partition_id=val) == [val]
    assert jobs.ids("claims", "job~", partition_id=val) == []
    assert jobs.ids("claims", "job7~", task="t") == [train, val]
    assert jobs.ids("claims", "job7~", worker="nobody") == []
    assert jobs.ids("clears", "job7~", state="pending") == [val, train]
    assert jobs.ids("clears", "job7~", state="aborted") == []


@pytest.mark.parametrize("state", ["committed", "aborted"])
def test_clears_of_a_deleted_partition_are_listed_by_its_name(api: Api, state: str) -> None:
    api.insert("a")
    clear = api.ok("POST", "clears", {"all": True})["clear_id"]
    api.ok("POST", f"/v1/clears/{clear}/{'commit' if state == 'committed' else 'abort'}", {})
    api.ok("DELETE", "")
    lines = api.ok("GET", "/v1/clears", params={"prefix": api.name, "state": state})["clears"]
    assert [line["clear_id"] for line in lines if line["partition_id"] == api.name] == [clear]
