"""The route table: it finds for every operation what Starlette's router finds, and nothing where that finds nothing."""

from typing import Any, cast

import pytest
from starlette.routing import Match, Route

from app.edge import Edge
from app.routes import ALL
from app.table import RouteTable

OPERATIONS = [operation for routes in ALL for operation in routes.operations]
TABLE = RouteTable(OPERATIONS, cast(Edge, None))
ROUTES = [Route(operation.path, operation.endpoint, methods=[operation.method]) for operation in OPERATIONS]
PARTS = ("", "{}", "/", "x", "v1", "partitions", "a b", "é", "..", "None")


def by_router(method: str, path: str) -> tuple[Any, dict[str, str]] | None:
    """What Starlette's router would call."""
    for route in ROUTES:
        match, scope = route.matches({"type": "http", "method": method, "path": path, "path_params": {}})
        if match is Match.FULL:
            return scope["endpoint"], scope["path_params"]
    return None


def paths(pattern: str) -> list[str]:
    """The path with each part in place of its names, longer, shorter, and without its slash."""
    made = ["/".join(part if named.startswith("{") else named for named in pattern.split("/")) for part in PARTS]
    return [path + end for path in made for end in ("", "/", "/x")] + [path[:-1] for path in made]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.operation_id)
def test_it_finds_what_the_router_finds(operation: Any) -> None:
    found = 0
    for path in paths(operation.path):
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "get"):
            there = TABLE.find(method, path)
            assert there == by_router(method, path), (method, path)
            found += there is not None
    assert found
