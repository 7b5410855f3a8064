"""A body in which a member stands twice in one object is refused, small or large, and its place is named."""

import json

import pytest

from .service import Api, exchange, head, post, refused

SCHEMA = '"field_schema":{"n":{"dtype":"int64","shape":[]}}'
SMALL = '"keys":["a"],"create":true,'
LARGE = SMALL + " " * 70_000
# members, and where one stands twice
TWICE = [
    ('"keys":["b"],' + SCHEMA, "body.keys"),
    ('"\\u006beys":["b"],' + SCHEMA, "body.keys"),
    ('"create" : true,' + SCHEMA, "body.create"),
    ('"on_cleared":null,"on_cleared":null,' + SCHEMA, "body.on_cleared"),
    ('"field_schema":{"n":{"kind":"object"},"n":{"kind":"object"}}', "body.field_schema.n"),
    ('"field_schema":{"n":{"kind":"object"},"\\u006e" : {"kind":"object"}}', "body.field_schema.n"),
    ('"field_schema":{"n":{"dtype":"int64","dtype":"int32","shape":[]}}', ".dtype"),
    ('"field_schema":{"n":{"dtype":"int64","lengths":{"const":1,"const":2}}}', ".lengths.const"),
    (SCHEMA + ',"backend_meta":{"n":[1],"n":[2]}', "body.backend_meta.n"),
    (SCHEMA + ',"backend_meta":{"n":{"const":1,"const":2}}', ".const"),
    (SCHEMA + ',"backend_meta":{"n":[{"at":1,"at":2}]}', "[0].at"),
    (SCHEMA + ',"custom_meta":{"const":{},"const":{}}', "body.custom_meta.const"),
    (SCHEMA + ',"custom_meta":{"const":{"x":1,"x":1}}', "body.custom_meta.const.x"),
    (SCHEMA + ',"custom_meta":[{"x":1,"\\u0078":2}]', "body.custom_meta[0].x"),
    (SCHEMA + ',"custom_meta":[{"x":{"y":[{"z":1,"z":2}]}}]', "body.custom_meta[0].x.y[0].z"),
]


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize(("members", "place"), TWICE)
def test_in_a_body_it_is_refused_and_nothing_is_made(api: Api, size: str, members: str, place: str) -> None:
    reply = exchange(api.url, post(f"{api.path}/production", f"{{{size}{members}}}".encode()))
    problem = refused(reply, 422, "invalid-request", "twice in one object")
    assert problem["errors"][0]["loc"].endswith(place)
    assert api.send("GET", "").status_code == 404


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["small", "large"])
def test_what_only_looks_like_it_is_taken(api: Api, size: str) -> None:
    cell = {"null": None, 'a":': ":", "rate": 1e-05, "nested": [{"x": 1}, {"x": {"x": 2}}], "é\\": "\\u0022:"}
    more = f'"on_cleared" : null , {SCHEMA}, "backend_meta" :\n{{"n":[{json.dumps(cell)}]}}, "custom_meta": [{{}}]'
    reply = exchange(api.url, post(f"{api.path}/production", f"{{ {size} {more} }}".encode()))
    assert reply.status_code == 200, reply.text
    assert api.ok("GET", "batch-meta")["backend_meta"]["n"] == [cell]


CONDITION = '{"path":"a","op":"==","value":1'


def test_in_where_it_is_refused(filled: Api) -> None:
    where = f'"where":[{CONDITION}}},{CONDITION},"value":2}}]'
    body = f'{{"fields":["ids"],"batch_size":1,{where}}}'
    problem = refused(
        exchange(filled.url, post(f"{filled.path}/tasks/t/claims", body.encode())), 422, "invalid-request", "twice"
    )
    assert problem["errors"][0]["loc"] == "body.where[1].value"
    problem = refused(
        filled.send("GET", "keys", params={"where": f'[{CONDITION},"\\u006fp":"<"}}]'}), 422, "invalid-request", "twice"
    )
    assert problem["errors"][0]["loc"] == "query.where[0].op"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "", '{"max_samples":1,"max_samples":2}'),
        ("PUT", "", '{"fields":{"n":{"dtype":"int64"},"n":{"dtype":"int32"}}}'),
        ("PATCH", "/custom-meta", '{"keys":["a"],"keys":["b"],"custom_meta":[{}]}'),
        ("POST", "/tasks/t/claims", '{"fields":["ids"],"batch_size":1,"sampler":{"name":"lifo","name":"sequential"}}'),
        ("POST", "/samples/delete", '{"keys":["a"],"keys":["b"]}'),
    ],
)
def test_so_it_is_with_every_call(filled: Api, method: str, path: str, body: str) -> None:
    request = head(method, f"{filled.path}{path}", "Content-Type: application/json", f"Content-Length: {len(body)}")
    refused(exchange(filled.url, request + body.encode()), 422, "invalid-request", "twice in one object")
