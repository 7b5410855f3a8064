"""The driver of a chaos run: kills the processes that were drawn, and does a supervisor's work for each.

For a dead worker it repeats the acks in doubt, releases its leases (or lets them run out), and starts it again.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import wait

from .deaths import SERVICE, Death
from .leased import Badge
from .ledger import settle_doubts
from .members import END_S, STALLED_S, Advanced, CrewFailed, Finished, Gone, Member, Place, Ready, Role, received, start
from .report import Advance
from .service import ServiceProcess


@dataclass(slots=True)
class Supervisor:
    """`members` are all processes ever started, those who get ready to begin with included; `badges` by worker.

    At the end `died` says in words who did, `doubts` counts the acks that were taken only when said again, and `reads`
    what the survivors read.
    """

    members: list[Member]
    roles: Mapping[str, Role]
    badges: Mapping[str, Badge]
    kinds: Mapping[str, str]
    place: Place
    service: ServiceProcess
    to_come: list[Death]
    advance: Advance
    died: list[str] = field(default_factory=list)
    doubts: int = 0
    reads: int = 0
    _working: list[Member] = field(default_factory=list)
    _progress: dict[str, int] = field(default_factory=dict)

    def conduct(self) -> None:
        """Give the word, and return when every role is done. Raises CrewFailed for a death that was not drawn."""
        self._working = list(self.members)
        for member in self._working:
            member.line.send("go")
        while self._working:
            for member in self._ready():
                if member in self._working:
                    self._hear(member, received(member))
            self._let_die()

    def _ready(self) -> list[Member]:
        lines = wait([member.line for member in self._working], timeout=STALLED_S)
        if not lines:
            raise CrewFailed(f"nothing moved for {STALLED_S} s; at work: {', '.join(m.name for m in self._working)}")
        return [member for member in self._working if member.line in lines]

    def _hear(self, member: Member, message: object) -> None:
        if isinstance(message, Gone):
            raise CrewFailed(f"{member.name} ended with exit status {message.status}")
        if isinstance(message, Ready):
            with suppress(OSError):  # it was killed when it had just got ready
                member.line.send("go")
        if isinstance(message, Finished):
            self._working.remove(member)
            self.reads += sum(tally.checked for tally in message.tallies)
        if isinstance(message, Advanced):
            self._move(message.bar, message.count)

    def _move(self, bar: str, count: int) -> None:
        self._progress[bar] = self._progress.get(bar, 0) + count
        self.advance(bar, count)

    def _let_die(self) -> None:
        due = [death for death in self.to_come if self._progress.get(death.bar, 0) >= death.after]
        for death in due:
            self.to_come.remove(death)
            if death.kind == SERVICE:
                self.service.crash()
                self.died.append(SERVICE)
            else:
                self._kill_one(death)

    def _kill_one(self, death: Death) -> None:
        living = [member for member in self._working if self.kinds.get(member.name) == death.kind]
        if not living:
            return
        member = living[int(death.lot * len(living))]
        member.process.kill()
        member.process.join(END_S)
        while not isinstance(message := received(member), Gone):
            self._hear(member, message)  # it had said this before it died
        member.line.close()
        if member in self._working:
            self._working.remove(member)
            self.died.append(f"{member.name} ({'reported' if death.is_reported else 'left to its leases'})")
            self._bring_back(member.name, death.is_reported)

    def _bring_back(self, name: str, is_reported: bool) -> None:
        asyncio.run(self._speak_for(self.badges[name], is_reported))
        member = start(name, self.roles[name], self.place)
        self.members.append(member)
        self._working.append(member)

    async def _speak_for(self, badge: Badge, is_reported: bool) -> None:
        async with self.place.client() as client:
            taken = await settle_doubts(client, badge.file)
            if is_reported:
                await client.release_worker(badge.worker)
        self.doubts += len(taken)
        for entry in taken:
            self._move(entry.task, len(entry.rows))
