"""An engine's thread that is driven by hand, so that a test sees what each call did. No test lives here."""

from collections.abc import Callable
from functools import partial
from typing import Any

from core.engine import Engine
from core.journal import MemoryJournal
from core.operations.claim import Claimed, NotClaimed
from core.runtime.calls import Call, Internal
from core.runtime.engine_thread import EngineThread
from tests.core.world import new_engine


class Future:
    """Stands for the caller's."""

    def __init__(self) -> None:
        self.is_gone = False

    def cancelled(self) -> bool:
        return self.is_gone


class World:
    """An engine's thread that is driven by hand, and what it answered."""

    def __init__(self) -> None:
        self.engine = new_engine()
        numbers = iter(range(10**6))
        self.engine.token = lambda: f"token-{next(numbers)}"
        self.thread = EngineThread(self.engine, MemoryJournal(), lambda _: None, lambda _: None)
        self.waiting: list[Call] = []
        self.claimed: list[Claimed] = []
        self.told: list[str] = []

    def do(self, operation: Callable[..., Any], *args: Any) -> None:
        call = Call(partial(_run, operation, args), self._tell, Future(), None, None)  # type: ignore[arg-type]
        self.thread.begin(call, lambda _: None)
        self.thread._wake()
        self._take_answers()
        self.thread._end_what_is_due()
        self._take_answers()
        self.engine.log.clear()
        self.waiting.append(call)

    def take_steps(self, most: int = 10**6) -> int:
        """Steps of work in slices, until nothing is left of it; how many."""
        for taken in range(most):
            if not self.thread._slices:
                return taken
            self.thread._take_a_step()
            self.thread._wake()
            self._take_answers()
        return most

    def _take_answers(self) -> None:
        """Batches in their order; what hands out nothing, and so changes nothing, may come before or after."""
        answers = [answer for _, answer in self.thread._answers]
        self.thread._answers.clear()
        assert not any(isinstance(answer, Internal) for answer in answers)
        self.told += sorted(map(str, answers), key=lambda answer: "" if answer.startswith("('c") else answer)

    def _tell(self, result: object) -> object:
        if isinstance(result, Claimed):
            self.claimed.append(result)
            return result.claim_id, result.task, result.batch.global_indexes.tolist()
        if isinstance(result, NotClaimed):
            return result.revision, result.ready, result.done, result.stranded, result.blocking
        return "done"


def _run(operation: Callable[..., Any], args: tuple[Any, ...], engine: Engine) -> Any:
    return operation(engine, *args)
