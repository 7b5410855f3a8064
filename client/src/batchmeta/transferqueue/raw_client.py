"""`RawClient`: an `AsyncClient` that also sends calls whose answers the adapter decodes itself."""

from ..aio import AsyncClient
from ..calls import Call
from ..exchange import Answer


class RawClient(AsyncClient):
    """Everything of AsyncClient, and `sent`."""

    async def sent(self, call: Call) -> Answer:
        """A 2xx answer, its body read but not decoded. Raises Problem, ConnectionLost."""
        return await self._connection.send(call)
