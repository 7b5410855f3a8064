"""Objects in processes of their own: what goes wrong there is one line here, and none outlives its end."""

import os
import signal
import time

import pytest

from bench.child import Child, ChildFailed


class Adder:
    def __init__(self, start: int) -> None:
        if start < 0:
            raise ValueError("no start\nbelow nothing")
        self.total = start

    def add(self, number: int) -> int:
        self.total += number
        return self.total

    def pid(self) -> int:
        return os.getpid()

    def sleep(self) -> None:
        time.sleep(600)

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_it_keeps_its_object_from_call_to_call() -> None:
    with Child(Adder, 1) as child:
        assert [child.do("add", 2), child.do("add", 3)] == [3, 6]
        assert child.do("pid") != os.getpid()


def test_several_can_be_at_work_at_once() -> None:
    with Child(Adder, 1) as one, Child(Adder, 10) as other:
        one.begin("add", 1)
        other.begin("add", 1)
        assert (one.end(), other.end()) == (2, 11)


def test_what_breaks_there_is_one_line_here() -> None:
    with Child(Adder, 1) as child, pytest.raises(ChildFailed, match="Adder: TypeError"):
        child.do("add", "x")
    with pytest.raises(ChildFailed, match=r"^Adder: ValueError: no start$"):
        Child(Adder, -1)


def test_one_that_dies_is_noticed() -> None:
    with Child(Adder, 1) as child, pytest.raises(ChildFailed, match="died"):
        child.do("die")


def test_one_at_work_is_gone_after_close() -> None:
    child = Child(Adder, 1)
    pid = child.do("pid")
    child.begin("sleep")
    child.close()
    assert not is_alive(pid)
