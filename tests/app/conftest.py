"""An `api` per test: the shared server, and a partition name that is this test's alone."""

from collections.abc import Iterator

import pytest

from .service import Api


@pytest.fixture
def api(server_url: str) -> Iterator[Api]:
    """Nothing is there yet under its name."""
    api = Api(server_url)
    with api.http:
        yield api


@pytest.fixture
def filled(api: Api) -> Api:
    """A partition with something of everything."""
    return fill(api)


def fill(api: Api) -> Api:
    """Rows a and b of group g with field ids, custom and backend meta; task t has consumed a."""
    schema = {"ids": {"dtype": "int64", "lengths": [3, 5]}}
    more = {"group_ids": {"const": "g"}, "custom_meta": [{"n": 1}, {"n": 2}], "backend_meta": {"ids": ["x", "y"]}}
    api.ok("POST", "production", {"keys": ["a", "b"], "create": True, "field_schema": schema, **more})
    assert api.claim("ids").status_code == 201
    return api
