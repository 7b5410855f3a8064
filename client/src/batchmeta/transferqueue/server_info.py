"""`HttpServerInfo`: what stands in TransferQueue's config in place of its controller's address, and picks the plane.

It is a ZMQServerInfo, so TransferQueue takes it, and it travels pickled to every worker. It carries no socket.
"""

from collections.abc import Mapping
from typing import Any

import httpx
from transfer_queue.utils.enum_utils import Role
from transfer_queue.utils.zmq_utils import ZMQServerInfo

from .service import Service
from .settings import Settings


class HttpServerInfo(ZMQServerInfo):  # type: ignore[misc]  # TransferQueue has no types
    """`sampler`: the spec that fetches use. `is_polling`: a fetch that finds too little answers at once, empty."""

    def __init__(self, settings: Settings, sampler: Mapping[str, Any], is_polling: bool) -> None:
        url = httpx.URL(settings.url)
        port = url.port or (443 if url.scheme == "https" else 80)
        ports = {"handshake_socket": port, "request_handle_socket": port}
        super().__init__(role=Role.CONTROLLER, id=f"batchmeta at {settings.url}", ip=url.host, ports=ports)
        self.settings = settings
        self.sampler = dict(sampler)
        self.is_polling = is_polling
        self.is_closed = False
        self.ending: Any = None  # the task that closes it, where a loop was running
        self._service: Service | None = None

    @property
    def service(self) -> Service:
        """The HTTP client; made at the first look."""
        if self._service is None:
            self._service = Service(self.settings)
        return self._service

    def opened(self) -> "HttpServerInfo":
        """The same, with a service of its own: one client of TransferQueue and its storage manager share it."""
        return HttpServerInfo(self.settings, self.sampler, self.is_polling)

    def with_sampler(self, sampler: Mapping[str, Any]) -> "HttpServerInfo":
        """The same with another sampler."""
        return HttpServerInfo(self.settings, sampler, self.is_polling)

    def __str__(self) -> str:
        job = f", job {self.settings.job!r}" if self.settings.job else ""
        return f"HttpServerInfo({self.settings.url}{job}, sampler={self.sampler}, polling={self.is_polling})"

    __repr__ = __str__


def service_of(owner: Any) -> Service | None:
    """The service of a client or storage manager of TransferQueue; None where it is on TransferQueue's own plane."""
    info = info_of(owner)
    return None if info is None else info.service


def info_of(owner: Any) -> HttpServerInfo | None:
    """Its controller's info, where that is ours."""
    info = getattr(owner, "_controller", None) or getattr(owner, "controller_info", None)
    return info if isinstance(info, HttpServerInfo) else None
