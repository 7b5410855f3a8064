"""A service in this process: the real executor, thread and journal, and a clock that only the test moves.

A call reaches it as core's operation (`Direct`) or as a request to the real application (`OverHttp`); both give the
bytes that a caller would get. Each call is answered before the next is sent, so a run is the same every time.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

import msgspec

from app.reply import Reply
from core.arrays import unpack
from core.engine import Engine
from core.errors import Refused
from core.events import Allotted, Change, Kept
from core.journal import EntryId, MemoryJournal
from core.runtime.calls import Preconditions
from core.runtime.executor import Executor
from core.state.kept_replies import KeptReplies, Keyed
from tests.core.world import Clock, new_engine
from tests.model.asgi import Application
from tests.model.calls import Call

T = TypeVar("T")
TIMEOUT_S = 10
KEPT = 6


@dataclass
class Answer:
    """A reply, or why there is none: `code` of the problem, and the rows that it names. `splits`: see Service."""

    body: Any = None
    raw: bytes = b""
    code: str | None = None
    rows: list[int] = field(default_factory=list)
    replayed: bool = False
    splits: dict[int, list[list[int]]] = field(default_factory=dict)


class Service:
    """What both forms share. Its engine may be looked into whenever no call is on its way."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.clock = Clock()
        self.journal = MemoryJournal(retain=True)
        self._tokens = map("token-{}".format, count())
        self._waiting: list[asyncio.Future[Answer]] = []
        self._read: EntryId | None = None
        self.start()

    def start(self) -> None:
        """A new engine, replayed from the journal."""
        self.journal.open()
        self.engine = new_engine()
        self.engine.clock, self.engine.token = self.clock, lambda: next(self._tokens)
        self.engine.replies = KeptReplies(KEPT)
        self.executor = Executor(self.engine, self.journal, self._broke)
        self._run(self._started())

    async def _started(self) -> None:
        replayed = threading.Event()
        self.executor._thread.inbox.put(replayed.set)
        self.executor.start()
        assert replayed.wait(TIMEOUT_S)

    @staticmethod
    def _broke(reason: str) -> None:
        raise AssertionError(reason)

    def restart(self) -> None:
        """Whoever waits is turned away; the state comes back from the journal."""
        self._run(self.executor.close())
        answers = [self._run(future) for future in self._waiting]
        assert all(answer.code == "not-ready" for answer in answers)
        self._waiting.clear()
        self.start()

    def close(self) -> None:
        try:
            self._run(self.executor.close())
            for future in self._waiting:
                self._run(future)
            self._run(self.loop.shutdown_default_executor())
        finally:
            self.loop.close()

    def _run(self, work: "Coroutine[Any, Any, T] | asyncio.Future[T]") -> T:
        async def bounded() -> T:
            return await asyncio.wait_for(work, TIMEOUT_S)

        return self.loop.run_until_complete(bounded())

    # Calls

    async def reply(self, call: Call, key: str | None) -> Answer:
        raise NotImplementedError

    def do(self, call: Call, key: str | None = None) -> Answer:
        """The answer to a call that does not wait."""
        return self._run(self.reply(call, key))

    def look(self, call: Call) -> Any:
        """The body of a read."""
        answer = self.do(call)
        assert answer.code is None, answer
        return answer.body

    def park(self, call: Call, key: str | None, waiting: int) -> "asyncio.Future[Answer]":
        """Send a call that has to wait; with it `waiting` calls do."""
        future: asyncio.Future[Answer] = self.loop.create_task(self.reply(call, key))
        self._run(self._until(lambda: self.executor.reading.waiting == waiting))
        self._waiting.append(future)
        return future

    async def _until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            await self.executor.call(lambda _: None, lambda _: None)

    def answered(self, future: "asyncio.Future[Answer]") -> Answer:
        """What a call that waited was told."""
        self._waiting.remove(future)
        return self._run(future)

    def settle(self) -> None:
        """Whatever was answered has reached its caller."""
        for _ in range(3):
            self._run(self.executor.call(lambda _: None, lambda _: None))

    def advance(self, seconds: float) -> None:
        """Time passes."""

        def move(_: Engine) -> None:
            self.clock.now += seconds

        self._run(self.executor.call(move, lambda _: None))

    def work(self, operation: Callable[[Engine], T]) -> T:
        """In the engine's thread."""
        return self._run(self.executor.call(operation, lambda found: found))

    def changes(self) -> Iterator[Change]:
        """What was journaled since the last time."""
        for entry in self.journal.read(self._read):
            self._read = entry.id
            yield from _changes_in(entry.payload)

    def splits(self) -> dict[int, list[list[int]]]:
        """What those changes set aside, by revision: nobody is told of the shares of the other ranks."""
        changes = [change for entry in self.journal.read(self._read) for change in _changes_in(entry.payload)]
        return {
            change.revision: [unpack(share).tolist() for share in event.shares]
            for change in changes
            for event in change.events
            if isinstance(event, Allotted)
        }


def _changes_in(payload: bytes) -> list[Change]:
    return msgspec.msgpack.decode(payload, type=list[Change])


class Direct(Service):
    """Calls as core's operations, handed to the engine's thread."""

    async def reply(self, call: Call, key: str | None) -> Answer:
        try:
            reply = await self._submit(call, key)
        except Refused as error:
            return Answer(code=error.code, rows=list(error.global_indexes))
        return Answer(json.loads(reply.body), reply.body, replayed=reply.replayed)

    def _submit(self, call: Call, key: str | None) -> "asyncio.Future[Reply]":
        if key is None or not call.changes:
            return self.executor.submit(call.operation, call.render, *call.arguments)
        keyed = Keyed(key, repr((call.method, call.path, call.body)).encode())
        return self.executor.submit_on(Preconditions(None, keyed, _again), call.operation, call.render, *call.arguments)

    def look(self, call: Call) -> Any:
        """Nobody else uses the engine now."""
        return json.loads(call.render(call.operation(self.engine, *call.arguments)).body)


def _again(kept: Kept) -> Reply:
    return Reply(kept.status, kept.body, kept.etag, replayed=True)


class OverHttp(Service):
    """Calls as requests, through everything but a socket."""

    _application: Application | None = None

    def start(self) -> None:
        super().start()
        if OverHttp._application is None:  # it takes long to build
            OverHttp._application = Application(self.executor)
        OverHttp._application.serve(self.executor)

    async def reply(self, call: Call, key: str | None) -> Answer:
        assert OverHttp._application is not None
        headers = {} if key is None else {"idempotency-key": key}
        status, given, raw = await OverHttp._application.request(call.method, call.path, call.body, headers)
        body = json.loads(raw)
        if status >= 300:
            return Answer(code=body["code"], rows=body.get("global_indexes", []))
        return Answer(body, raw, replayed=given.get("idempotency-replayed") == "true")
