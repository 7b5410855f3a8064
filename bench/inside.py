"""Our engine and renderer at work without HTTP, in a child process of the bench: what one reply costs to make."""

from collections.abc import Callable

from app.convert import selector, view
from app.routes import batch_meta_render
from batchmeta.wire.requests import Read
from core.limits import MAX_ROWS
from core.operations.read import read, read_backend_meta
from core.reading.batch import Batch

from .engines import load, new_engine, whole
from .profile import FIELDS, PARTS, Backend, make
from .turns import timed


class Inside:
    """An engine that holds rows of the profile; every verb but `load` gives the seconds of its calls."""

    def __init__(self) -> None:
        self.engine = new_engine()
        self.request = Read(fields=list(FIELDS), include=PARTS, compact=True)
        self.render = batch_meta_render.page

    def load(self, rows: int, backend: Backend) -> None:
        """`rows` rows, in place of those before."""
        self.engine = new_engine()
        load(self.engine, "p", make(rows, backend))

    def request_to_bytes(self, calls: int) -> list[float]:
        """Decoded request to reply bytes, all parts."""
        return self._timed(lambda: whole(self.render(self._read())), calls)

    def backend_meta(self, calls: int) -> list[float]:
        """The lookup of backend meta alone."""
        chosen, wanted = selector(self.request), view(self.request, self.request.fields)
        return self._timed(lambda: whole(read_backend_meta(self.engine, "p", chosen, wanted, MAX_ROWS, None)), calls)

    def encode(self, calls: int) -> list[float]:
        """From what the operation gives to bytes."""
        batch = self._read()
        return self._timed(lambda: whole(self.render(batch)), calls)

    def reply_bytes(self) -> int:
        """The size of the whole reply."""
        return len(whole(self.render(self._read())).body)

    def _read(self) -> Batch:
        request = self.request
        wanted = view(request, request.fields)
        return whole(read(self.engine, "p", selector(request), wanted, False, MAX_ROWS, None))

    def _timed(self, call: Callable[[], object], calls: int) -> list[float]:
        call()
        return timed(call, calls)
