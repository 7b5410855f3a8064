"""Two views of a connection with other retries: `Patient` waits out a restart, `Hasty` gives up soon."""

from dataclasses import dataclass

from .calls import Call
from .connection import Connection
from .errors import ConnectionLost, Problem
from .exchange import Answer

# No gateway cuts a wait sooner: what is lost after less was lost for another reason.
CUT_AFTER_S = 5.0
_READY = Call("GET", "/readyz", is_pinned=False)


@dataclass(frozen=True, slots=True)
class Hasty:
    """Does not wait out a restart of the service: a few sendings and no more."""

    connection: Connection

    async def send(self, call: Call) -> Answer:
        """As Connection.send."""
        return await self.connection.send(call, self.connection.retries.hasty())

    def new_epoch(self) -> None:
        """As Connection.new_epoch."""
        self.connection.new_epoch()


@dataclass(frozen=True, slots=True)
class Patient:
    """Goes on with a wait that a gateway cuts again and again, under the same key, as long as the service is there."""

    connection: Connection

    async def send(self, call: Call) -> Answer:
        """As Connection.send. A `most` of the retries bounds the sendings here too."""
        while True:
            try:
                return await self.connection.send(call)
            except ConnectionLost as lost:
                is_cut = call.wait_s and lost.after_s >= CUT_AFTER_S
                if not is_cut or self.connection.retries.most is not None or not await self._is_there():
                    raise

    def new_epoch(self) -> None:
        """As Connection.new_epoch."""
        self.connection.new_epoch()

    async def _is_there(self) -> bool:
        try:
            await Hasty(self.connection).send(_READY)
        except (ConnectionLost, Problem):
            return False
        return True
