"""What the reply to an insert describes, as contract#insert has it, over HTTP: the words of a read, for these rows."""

from itertools import chain, combinations
from typing import Any

import pytest

from tests.columns import in_full

from .service import Api

PARTS = ("keys", "group_ids", "field_schema", "custom_meta", "backend_meta", "field_status")
LENGTHS = {"dtype": "int64", "lengths": [3, 5]}
HEAD = {"partition_id", "revision", "size", "is_ready", "global_indexes", "fields", "missing_fields"}
HEAD |= {"production_status", "created"}


@pytest.fixture
def mixed(api: Api) -> Api:
    """A partition whose rows have different fields."""
    schema = {"ids": LENGTHS, "mask": LENGTHS}
    body = {"keys": ["a", "b"], "create": True, "field_schema": schema, "group_ids": ["g", 7]}
    api.ok("POST", "production", {**body, "backend_meta": {"ids": ["x", "y"], "mask": ["x", "y"]}})
    api.ok("POST", "production", {"keys": ["a"], "field_schema": {"score": {"dtype": "float32", "shape": []}}})
    return api


@pytest.mark.parametrize("parts", [(), *chain.from_iterable(combinations(PARTS, n) for n in (1, 2, 6))], ids="-".join)
def test_the_reply_has_the_parts_asked_for_and_no_other(mixed: Api, parts: tuple[str, ...]) -> None:
    out = mixed.ok("POST", "samples", {"keys": ["b", "new", "a"], "include": list(parts)})
    assert out.keys() == HEAD | set(parts)
    assert (out["created"], out["fields"], out["production_status"]) == (1, ["ids", "mask", "score"], [0, 0, 1])


def test_a_write_back_learns_in_one_call_which_sample_has_which_field(mixed: Api) -> None:
    out = mixed.ok("POST", "samples", {"keys": ["c", "a", "b"], "include": ["field_status"], "expand": True})
    assert out["field_status"] == {"ids": [0, 1, 1], "mask": [0, 1, 1], "score": [0, 1, 0]}


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("expand", [True, False])
def test_it_is_what_a_read_of_these_samples_says(mixed: Api, *, expand: bool, compact: bool, share: bool) -> None:
    how = {"expand": expand, "compact": compact, "share_columns": share, "include": list(PARTS)}
    out = mixed.ok("POST", "samples", {"keys": ["b", "c", "a"], **how})
    read = mixed.ok("POST", "batch-meta", {"keys": ["b", "c", "a"], **how})
    assert out.pop("created") == 1
    assert out == {name: value for name, value in read.items() if name not in ("missing_keys", "next_cursor")}
    assert ("same_as" in str(out)) is share
    assert ("lengths" in out["field_schema"]["ids"]) is compact
    column = in_full(out)["field_schema"]["mask"]["lengths" if compact else "shapes"]
    assert column == ([5, None, 3] if compact else [[5], None, [3]])


def test_without_include_it_has_the_usual_parts(mixed: Api) -> None:
    out = mixed.ok("POST", "samples", {"keys": ["a"]})
    assert out.keys() == HEAD | {"keys", "field_schema", "custom_meta", "backend_meta"}
    other = Api(mixed.url)
    with other.http:
        assert "keys" not in other.ok("POST", "samples", {"count": 1})


def test_many_samples_are_described_as_few_are(api: Api) -> None:
    """More than are described in one step (core.reading.sliced_batch)."""
    keys = [f"k{at}" for at in range(20_000)]
    schema = {"ids": {"dtype": "int64", "lengths": list(range(1, 10_001))}}
    api.ok("POST", "production", {"keys": keys[:10_000], "create": True, "field_schema": schema})
    body: dict[str, Any] = {"keys": keys, "include": ["field_status", "field_schema", "keys"], "compact": True}
    headers = {"Idempotency-Key": f"{api.name}-many"}
    out, again = (api.ok("POST", "samples", body, headers=headers) for _ in range(2))
    assert (out["created"], out["size"], out["keys"]) == (10_000, 20_000, keys)
    assert out["field_status"] == {"ids": [1] * 10_000 + [0] * 10_000}
    assert out["field_schema"]["ids"]["lengths"] == [*range(1, 10_001), *[None] * 10_000]
    assert again == out
    assert {**api.ok("POST", "samples", body), "created": 10_000} == out
