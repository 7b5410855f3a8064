"""The rows: those of the published profile, the same each time, and accepted by the wire as they are."""

import json
from dataclasses import asdict
from pathlib import Path

import msgspec
import pytest

from batchmeta.wire.requests import Produce
from bench.profile import FIELDS, Backend, make


def test_it_has_the_fields_of_the_profile() -> None:
    fields = make(16).fields
    assert len({field["name"] for field in fields}) == len(FIELDS) == 28
    ragged = [f for f in fields if f["shapes"] and len({tuple(shape) for shape in f["shapes"]}) > 1]
    assert len(ragged) == 17
    assert sum(field["kind"] == "object" for field in fields) == 10


def test_it_is_the_same_each_time_and_survives_the_file(tmp_path: Path) -> None:
    path = make(9).save(tmp_path / "p.json")
    assert json.loads(path.read_text()) == asdict(make(9))


def test_lengths_belong_together() -> None:
    shapes = {field["name"]: field["shapes"] for field in make(24).fields}
    metas = make(24).custom_meta
    for row, meta in enumerate(metas):
        assert len(meta) == 7
        assert shapes["prompts"][row] == [meta["prompt_len"]]
        assert shapes["responses"][row] == shapes["advantages"][row] == [meta["response_len"]]
        assert shapes["input_ids"][row] == [meta["prompt_len"] + meta["response_len"]]


def test_eight_answers_share_their_prompt_and_its_group() -> None:
    rows = make(24)
    assert len(set(rows.group_ids)) == 3
    assert len(set(rows.keys)) == 24
    prompts = next(field for field in rows.fields if field["name"] == "prompts")["shapes"]
    assert prompts[:8] == [prompts[0]] * 8


def test_backend_meta_is_constant_per_field_or_another_in_every_cell() -> None:
    const, distinct = make(5).backend_meta, make(5, "distinct").backend_meta
    assert {name: len(set(cells)) for name, cells in const.items()} == dict.fromkeys(FIELDS, 1)
    assert (const["input_ids"][0], const["uid"][0]) == ("1", "2")
    assert len({json.dumps(cell) for cells in distinct.values() for cell in cells}) == 5 * 28


@pytest.mark.parametrize("backend", ["const", "distinct"])
def test_the_wire_takes_its_bodies(backend: Backend) -> None:
    body = make(16, backend).body(4, 12)
    request = msgspec.json.decode(json.dumps(body), type=Produce)
    assert request.keys == make(16, backend).keys[4:12]
    assert len(request.field_schema) == len(request.backend_meta or {}) == 28


def test_parts_can_be_left_out() -> None:
    body = make(4).body(0, 4, backend=False, meta=False, keyed=False)
    assert set(body) == {"field_schema"}
