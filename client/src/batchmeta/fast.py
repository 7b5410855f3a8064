"""The transport of the `fast` extra: httpx's interface over aiohttp. Imported only where httpx-aiohttp is installed."""

import ssl

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

# The first that fits. What is not here was broken off by the other side.
_AS_HTTPX: list[tuple[type[Exception], type[httpx.TransportError]]] = [
    (aiohttp.ClientConnectorError, httpx.ConnectError),
    (aiohttp.ConnectionTimeoutError, httpx.ConnectTimeout),
    (TimeoutError, httpx.ReadTimeout),
    (aiohttp.ClientOSError, httpx.ReadError),
]


class FastTransport(AiohttpTransport):
    """AiohttpTransport, whose table leaves some of aiohttp's errors as they are, and calls a refusal a timeout."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        try:
            return await super().handle_async_request(request)
        except (httpx.TransportError, aiohttp.ClientError, OSError) as error:
            raise _as_httpx(error.__cause__ if isinstance(error, httpx.TransportError) else error) from error


def aiohttp_transport(idle_s: float, tls: ssl.SSLContext) -> httpx.AsyncBaseTransport:
    """Without a limit on connections; one that was idle for `idle_s` seconds is not used again."""

    def session() -> aiohttp.ClientSession:
        # Made at the first call, since it belongs to the loop that runs then.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=idle_s, ssl=tls)
        return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())

    return FastTransport(verify=tls, client=session)


def _as_httpx(error: BaseException | None) -> httpx.TransportError:
    kinds = [theirs for ours, theirs in _AS_HTTPX if isinstance(error, ours)]
    return (kinds or [httpx.RemoteProtocolError])[0](str(error))
