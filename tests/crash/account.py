"""The account that every restart is checked against: each acknowledged call is there with its result; each call without
an answer is there whole or not at all, and sent again gets its first answer or is done now; no index and no row is
given out twice; the revision does not fall.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tests.crash.calls import Call, Door, Lost, Seen, Unanswered, counter, inserter, look, producer, taker


def _callers() -> dict[str, Iterator[Call]]:
    return {"i": inserter("i"), "c": counter("c"), "p": producer("p"), "q": producer("q"), "t": taker("t")}


@dataclass
class Account:
    """Over all lives of one folder. `pending`: what each caller sent last and has no answer to."""

    callers: dict[str, Iterator[Call]] = field(default_factory=_callers)
    told: list[Call] = field(default_factory=list)
    last: dict[str, Call] = field(default_factory=dict)
    pending: dict[str, Call] = field(default_factory=dict)
    revision: int = 0
    made: set[int] = field(default_factory=set)
    taken: set[int] = field(default_factory=set)
    sums: Counter[str] = field(default_factory=Counter)

    async def call_together(self, door: Door, most: int, on_told: Callable[[], object] = lambda: None) -> None:
        """All callers at once, `most` calls each, or until the service is gone. One that has no answer yet stays so."""

        async def calling(who: str) -> None:
            with suppress(Unanswered):
                for _ in range(most):
                    self.pending[who] = next(self.callers[who])
                    await self._send(door, who)
                    on_told()

        async with asyncio.TaskGroup() as group:
            for who in self.callers.keys() - self.pending.keys():
                group.create_task(calling(who))

    async def settle(self, door: Door) -> None:
        """After a restart, before anything else is called. Raises Lost, Unanswered."""
        seen = await look(door)
        self._check(seen)
        for who, call in list(self.pending.items()):
            was_there = _is_whole(call, seen)
            was_replayed = await self._send(door, who)
            if was_there is not None and was_there is not was_replayed:
                raise Lost(f"{call.name} was {'' if was_there else 'not '}there, and yet replayed: {was_replayed}")
        await self._ask_again(door)
        seen = await look(door)
        self._check(seen)
        self._sum(seen)

    async def _send(self, door: Door, who: str) -> bool:
        """Until it is answered it is pending. Whether the answer was one that is given again."""
        call = self.pending[who]
        status, headers, raw = await door(call.method, call.path, call.body, {"idempotency-key": call.name})
        if status >= 300:
            raise Lost(f"{call.name} got {status}: {raw.decode()}")
        call.raw = raw
        self._keep(who, call)
        return _is_replayed(headers)

    def _keep(self, who: str, call: Call) -> None:
        del self.pending[who]
        self.told.append(call)
        self.last[who] = call
        reply = call.reply
        self.revision = max(self.revision, reply["revision"])
        if call.makes:
            _give(self.made, reply["global_indexes"], call)
        if reply.get("claim") is not None:
            _give(self.taken, reply["batch"]["global_indexes"], call)
        self.sums.update({name: reply.get(name, 0) for name in ("accepted", "cleared")})

    def _check(self, seen: Seen) -> None:
        if seen.revision < self.revision:
            raise Lost(f"revision {seen.revision} is below {self.revision}, which was told")
        for call in self.told:
            if call.there is not None and not call.is_over and not all(call.there(seen)):
                raise Lost(f"{call.name} was acknowledged and is gone")
            if call.makes and not call.is_over:
                found = [row.index for row in seen.made_by[call.name]]
                if found != call.reply["global_indexes"]:
                    raise Lost(f"{call.name} was told {call.reply['global_indexes']}, its rows are {found}")

    async def _ask_again(self, door: Door) -> None:
        """The newest answer of each caller is given again to the same key, byte for byte."""
        for call in self.last.values():
            if call.there is None:  # a claim that found nothing is not kept
                continue
            _, headers, raw = await door(call.method, call.path, call.body, {"idempotency-key": call.name})
            if raw != call.raw or not _is_replayed(headers):
                raise Lost(f"{call.name} was told {call.raw!r}, and then {raw!r}")

    def _sum(self, seen: Seen) -> None:
        """Nothing is there but what is known of."""
        accepted = self.sums["accepted"]
        found = seen.rows, len(seen.consumed), seen.leased
        meant = len(self.made) - self.sums["cleared"], accepted, len(self.taken) - accepted
        if found != meant:
            raise Lost(f"rows, consumed, leased are {found}, and should be {meant}")


def _give(before: set[int], indexes: list[int], call: Call) -> None:
    again = before.intersection(indexes)
    if again:
        raise Lost(f"{call.name} was given {sorted(again)}, which another had")
    before.update(indexes)


def _is_whole(call: Call, seen: Seen) -> bool | None:
    parts = set(call.there(seen)) if call.there is not None else {None}
    if len(parts) > 1:
        raise Lost(f"{call.name} is there by half")
    return parts.pop()


def _is_replayed(headers: Any) -> bool:
    return bool(headers.get("idempotency-replayed") == "true")
