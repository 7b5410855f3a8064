"""The copy of keys and tags, against a real server: what changed is told, and every caller gets objects of its own."""

from collections.abc import AsyncIterator
from itertools import count

import pytest
import pytest_asyncio

from batchmeta.errors import PartitionCleared
from batchmeta.transferqueue.raw_client import RawClient
from batchmeta.transferqueue.views import MOST, View, Views

pytestmark = pytest.mark.asyncio
names = (f"views-{n}" for n in count())


@pytest_asyncio.fixture
async def client(server_url: str) -> AsyncIterator[RawClient]:
    async with RawClient(server_url) as client:
        yield client


async def test_changes_arrive(client: RawClient) -> None:
    views, name = Views(), next(names)
    await client.insert(name, keys=["a", 'b"\\'], custom_meta=[{"n": 1}, {"n": None}])
    first = await views.read(client, name)
    assert first.tags() == {"a": {"n": 1}, 'b"\\': {}}
    first.tags()["a"]["n"] = 7
    assert first.tags()["a"] == {"n": 1}
    await client.insert(name, keys=["c", "a"], custom_meta=[{}, {"n": 2}])
    await client.delete(name, keys=['b"\\'])
    assert (await views.read(client, name)).tags() == {"a": {"n": 2}, "c": {}}
    assert list((await views.read(client, name)).tags()) == ["a", "c"]  # by age, not by change
    assert list((await Views().read(client, name)).tags()) == ["a", "c"]
    assert first.tags()["a"] == {"n": 1}  # a view that somebody holds does not change under them


async def test_nothing_changed_is_seen_from_the_list_of_partitions(client: RawClient) -> None:
    views, name = Views(), next(names)
    await client.insert(name, keys=["a"])
    read = await views.read(client, name)
    (line,) = await client.partitions(name)
    assert views.kept(name, line.revision) is read
    await client.insert(name, keys=["b"])
    (line,) = await client.partitions(name)
    assert views.kept(name, line.revision) is None


async def test_a_partition_made_anew_is_read_anew(client: RawClient) -> None:
    views, name = Views(), next(names)
    await client.insert(name, keys=["a", "b"])
    await views.read(client, name)
    await client.delete_partition(name)
    with pytest.raises(PartitionCleared):
        await views.read(client, name)
    await client.insert(name, keys=["b"], custom_meta=[{"n": 1}])
    assert (await views.read(client, name)).tags() == {"b": {"n": 1}}


async def test_pages_are_joined(client: RawClient) -> None:
    views, name = Views(), next(names)
    keys = [f"k{n}" for n in range(2_500)]
    await client.insert(name, keys=keys)
    assert list((await views.read(client, name)).tags()) == keys
    assert View().tags() == {}


async def test_views_are_bounded(client: RawClient) -> None:
    views, many = Views(), [next(names) for _ in range(3)]
    for name in many:
        await client.insert(name, keys=["a"])
        await views.read(client, name)
    views.keep_only({many[0], many[2]})
    assert [views.kept(name, 0) is not None for name in many] == [True, False, True]
    for place in range(MOST):
        views._remember(f"other-{place}", View())
    assert [views.kept(name, 0) for name in many] == [None, None, None]
    assert len(views._views) == MOST
