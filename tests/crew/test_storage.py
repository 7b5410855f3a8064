"""What the step needs of each storage: stored values come back, missing ones are named, deletes are counted."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from crew.storage import MissingBytes, Storage, StorageAddress, cell_name, connect


def test_values_come_back_in_the_order_asked(storage: Storage) -> None:
    storage.put({"1@a": b"one", "2@a": b"two"})

    assert storage.get(["2@a", "1@a", "2@a"]) == [b"two", b"one", b"two"]


def test_every_missing_name_is_named(storage: Storage) -> None:
    storage.put({"3@a": b"three"})

    with pytest.raises(MissingBytes) as some:
        storage.get(["4@a", "3@a", "5@a"])
    with pytest.raises(MissingBytes) as all_of_them:
        storage.get(["4@a", "5@a"])

    assert some.value.names == ("4@a", "5@a")
    assert all_of_them.value.names == ("4@a", "5@a")


def test_a_second_put_replaces(storage: Storage) -> None:
    storage.put({"6@a": b"old"})
    storage.put({"6@a": b"newer"})

    assert storage.get(["6@a"]) == [b"newer"]


def test_delete_counts_what_was_there_and_removes_it(storage: Storage) -> None:
    storage.put({"7@a": b"x", "8@a": b"y"})

    assert storage.delete(["7@a", "8@a", "9@a"]) == 2
    assert storage.delete(["7@a", "8@a"]) == 0
    with pytest.raises(MissingBytes):
        storage.get(["7@a"])


def test_more_names_than_one_call_of_openyuanrong_takes(storage: Storage) -> None:
    values = {cell_name(index, "many"): bytes([index % 251, 1]) for index in range(2500)}
    storage.put(values)

    assert storage.get(list(values)) == list(values.values())
    assert storage.delete(list(values)) == 2500


def test_values_of_a_megabyte(storage: Storage) -> None:
    big = bytes(range(256)) * 4096
    storage.put({"10@big": big, "11@big": big[::-1]})

    assert storage.get(["10@big", "11@big"]) == [big, big[::-1]]
    assert storage.delete(["10@big", "11@big"]) == 2


def test_no_names_is_no_question(storage: Storage) -> None:
    storage.put({})

    assert storage.get([]) == []
    assert storage.delete([]) == 0


def test_another_connection_sees_the_same_bytes(memory_address: StorageAddress) -> None:
    ours, theirs = connect(memory_address), connect(memory_address)
    ours.put({"12@a": b"shared"})

    assert theirs.get(["12@a"]) == [b"shared"]


def test_connections_work_at_once(memory_address: StorageAddress) -> None:
    def write_and_read(number: int) -> bytes:
        mine = connect(memory_address)
        for index in range(50):
            mine.put({cell_name(index, f"by{number}"): bytes([number])})
        return b"".join(mine.get([cell_name(index, f"by{number}") for index in range(50)]))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(write_and_read, range(8))) == [bytes([number]) * 50 for number in range(8)]
