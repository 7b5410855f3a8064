"""The transport of the `fast` extra: httpx's interface over aiohttp. Imported only where httpx-aiohttp is installed."""

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport


class FastTransport(AiohttpTransport):
    """AiohttpTransport, whose table leaves some of aiohttp's errors as they are: here all become httpx's."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        try:
            return await super().handle_async_request(request)
        except (aiohttp.ClientError, OSError) as error:
            raise httpx.RemoteProtocolError(str(error)) from error


def aiohttp_transport(idle_s: float) -> httpx.AsyncBaseTransport:
    """Without a limit on connections; one that was idle for `idle_s` seconds is not used again."""

    def session() -> aiohttp.ClientSession:
        # Made at the first call, since it belongs to the loop that runs then.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=idle_s)
        return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())

    return FastTransport(client=session)
