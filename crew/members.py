"""The processes of a crew and the pipe between each of them and the driver.

The driver sends one word, "go"; the process sends Ready, Advanced and Finished. A pipe that closes early means that the
other side died: the driver then fails the run (or, in chaos, starts another process), and a process ends itself.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from threading import Event, Thread

from batchmeta import AsyncClient, Retries

from .account import Tally
from .desk import Desk
from .storage import StorageAddress, connect

Role = Callable[[Desk], Awaitable[None]]
READY_S = 120
STALLED_S = 60
END_S = 5


class CrewFailed(RuntimeError):
    """A process of the crew died, or there is no progress any more."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The process has its client and storage and waits for "go"."""


@dataclass(frozen=True, slots=True)
class Advanced:
    """A bar moved."""

    bar: str
    count: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The role is done; this is all that it did."""

    tallies: list[Tally]


@dataclass(frozen=True, slots=True)
class Gone:
    """The process died. It is no message: the driver makes it when the pipe closes."""

    status: int | None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process works: the service and the storage. `patience_s`: how long it waits for an absent service.

    `fixed_shape`: fields whose tensor has one shape in every sample; all others are ragged.
    """

    url: str
    storage: StorageAddress
    patience_s: float = 2.0
    fixed_shape: frozenset[str] = frozenset()

    def client(self) -> AsyncClient:
        """A client of the service."""
        return AsyncClient(self.url, retries=Retries(most=10_000, longest_s=0.5, within_s=self.patience_s))


@dataclass(frozen=True, slots=True)
class Member:
    """One process, seen from the driver."""

    name: str
    process: BaseProcess
    line: Connection


def _work(role: Role, place: Place, line: Connection) -> None:
    """The life of one process."""
    # Ctrl-C goes to the whole foreground group; the driver alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    told_to_go = Event()
    Thread(target=_listen, args=(line, told_to_go), daemon=True).start()
    line.send(Finished(asyncio.run(_play(role, place, line, told_to_go))))


def _listen(line: Connection, told_to_go: Event) -> None:
    try:
        line.recv()
        told_to_go.set()
        line.recv()
    except (EOFError, ConnectionError):
        os._exit(1)


async def _play(role: Role, place: Place, line: Connection, told_to_go: Event) -> list[Tally]:
    async with place.client() as client:
        storage = connect(place.storage)
        desk = Desk(client, storage, lambda bar, count: line.send(Advanced(bar, count)), place.fixed_shape)
        # The first call opens the connection and imports what that takes: no part of the run's time.
        await client.server()
        line.send(Ready())
        await asyncio.to_thread(told_to_go.wait)
        await role(desk)
        return list(desk.tallies.values())


@contextmanager
def crew(roles: dict[str, Role], place: Place, preload: Sequence[str] = ()) -> Iterator[list[Member]]:
    """Start one process for each role; whatever happens, none is left at the end.

    Each is forked from a process that did nothing but import the modules of `preload` and what all roles need: that
    import once for each process may cost more than the work.
    """
    get_context("forkserver").set_forkserver_preload(["crew.leased", "crew.members", "batchmeta.fast", *preload])
    members: list[Member] = []
    try:
        for name, role in roles.items():
            members.append(start(name, role, place))
        yield members
    finally:
        for member in members:
            member.line.close()
        for member in members:
            member.process.join(END_S)
            member.process.kill()


def start(name: str, role: Role, place: Place) -> Member:
    """A process that gets ready and waits for the word."""
    context = get_context("forkserver")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(role, place, theirs), name=name, daemon=True)
    process.start()
    theirs.close()
    return Member(name, process, ours)


def assemble(members: list[Member]) -> None:
    """Return when every process is ready. Raises CrewFailed."""
    waiting = list(members)
    while waiting:
        for member, message in heard(waiting, READY_S):
            require_alive(member, message)
            waiting.remove(member)


def conduct(members: list[Member], advance: Callable[[str, int], None]) -> list[Tally]:
    """Give the word, pass progress on to `advance`, collect the tallies. Raises CrewFailed."""
    for member in members:
        member.line.send("go")
    working, tallies = list(members), []
    while working:
        for member, message in heard(working, STALLED_S):
            require_alive(member, message)
            if isinstance(message, Advanced):
                advance(message.bar, message.count)
            elif isinstance(message, Finished):
                tallies += message.tallies
                working.remove(member)
    return tallies


def heard(members: list[Member], limit_s: float) -> Iterator[tuple[Member, object]]:
    """One message of each that has one, Gone of those that died. Raises CrewFailed when nothing comes."""
    lines = {member.line: member for member in members}
    ready = wait(list(lines), timeout=limit_s)
    if not ready:
        raise CrewFailed(f"nothing moved for {limit_s} s; still at work: {', '.join(m.name for m in members)}")
    for line in ready:
        member = lines[line]  # type: ignore[index]  # wait() gives back what it was given
        yield member, received(member)


def received(member: Member) -> object:
    """The next message of a process, waited for; Gone if there is none, or only a part of one."""
    try:
        return member.line.recv()
    except (EOFError, OSError):
        member.process.join(END_S)
        return Gone(member.process.exitcode)


def require_alive(member: Member, message: object) -> None:
    """Raises CrewFailed if the message is that there will be none."""
    if isinstance(message, Gone):
        raise CrewFailed(f"{member.name} ended with exit status {message.status}")
