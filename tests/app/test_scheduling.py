"""The event loop's thread asks to go first, where the system lets it; nothing else of the service does."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app import scheduling
from tests.conftest import ServerProcess


def in_a_thread(work: Callable[[], Any]) -> Any:
    """What `work` gives, in a thread of its own: a policy stays with the thread that asked."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def policies() -> tuple[bool, int, int]:
    """Whether it was allowed; the policy of the thread that asked, and of one that it started."""
    allowed = scheduling.go_first()
    return allowed, os.sched_getscheduler(0), in_a_thread(lambda: os.sched_getscheduler(0))


def test_the_thread_goes_first_and_those_it_starts_do_not() -> None:
    allowed, own, started = in_a_thread(policies)
    wanted = os.SCHED_RR | os.SCHED_RESET_ON_FORK if allowed else os.SCHED_OTHER
    assert (own, started) == (wanted, os.SCHED_OTHER)


def test_where_the_system_says_no_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    assert not in_a_thread(scheduling.go_first)


def test_where_there_is_no_such_thing_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_setscheduler")
    assert not in_a_thread(scheduling.go_first)


@pytest.mark.parametrize("flags", [(), ("--realtime", "false")])
def test_of_the_service_only_the_loop_goes_first(flags: tuple[str, ...]) -> None:
    allowed = in_a_thread(scheduling.go_first)
    server = ServerProcess("--journal", "memory:", *flags)
    try:
        threads = {int(task.name) for task in Path(f"/proc/{server.process.pid}/task").iterdir()}
        first = {thread for thread in threads if os.sched_getscheduler(thread) != os.SCHED_OTHER}
    finally:
        server.kill()
    assert first == ({server.process.pid} if allowed and not flags else set())
    assert len(threads) > 1
