"""A Ray actor under the name of TransferQueue's controller, so that `transfer_queue.init(conf)` runs as it is.

It holds the config that other processes read; everything else goes to the service over HTTP.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import httpx

from ..blocking_generated import Client
from ..errors import ConnectionLost, Problem, UnreadableReply
from ..retries import Retries
from .errors import AdapterError, NoService
from .samplers import spec_of
from .server_info import HttpServerInfo
from .service import Service
from .settings import Settings

PATIENCE_S = 600.0  # to start a storage backend takes minutes at most
FEW = Retries(most=3)


class StandIn:
    """What `init`, samplers, metrics and tools ask of TransferQueue's controller actor."""

    def __init__(self, info: HttpServerInfo, clock: Callable[[], float] = time.monotonic) -> None:
        self._info = info
        self._config: Any = None
        self._clock, self._born = clock, clock()

    def get_zmq_server_info(self) -> HttpServerInfo:
        """What clients connect to."""
        return self._info

    def store_config(self, conf: Any) -> None:
        """Keep the config."""
        self._config = conf

    def get_config(self) -> Any:
        """The config, None until it is stored. TransferQueue asks again for ever, so AdapterError ends that."""
        if self._config is None and self._clock() - self._born > PATIENCE_S:
            raise AdapterError(
                f"the process that called transfer_queue.init first has stored no config for {PATIENCE_S:g} s: it has "
                "probably ended. Call transfer_queue.close() and init again"
            )
        return self._config

    def register_sampler(self, sampler: Any) -> None:
        """Fetches of clients that are made from now on use this sampler."""
        self._info = self._info.with_sampler(spec_of(sampler))
        if self._config is not None:
            self._config.controller.zmq_info = self._info

    def create_partition(self, partition_id: str) -> bool:
        """Make a partition; False if it exists."""

        async def make(service: Service) -> bool:
            partition, expected = service.partition(partition_id), service.settings.expected_samples
            if partition in [line for _, line, _ in await service.partitions()]:
                return False
            await service.client.put_partition(partition, expected_samples=expected)
            return True

        return bool(self._asked(make))

    def list_partitions(self) -> list[str]:
        """The job's partitions."""

        async def names(service: Service) -> list[str]:
            return [name for name, _, _ in await service.partitions()]

        return list(self._asked(names))

    def start_metrics(self, port: int = 0) -> str:  # noqa: ARG002  # the service has its own port
        """`host:port` of the service, whose metrics it serves itself."""
        return httpx.URL(self._info.settings.url).netloc.decode("ascii")

    def register_storage_units_for_metrics(self, storage_unit_infos: Any) -> None:
        """Storage units serve their metrics themselves."""

    def _asked(self, call: Callable[[Service], Any]) -> Any:
        async def run() -> Any:
            service = Service(self._info.settings)
            try:
                return await call(service)
            finally:
                await service.close()

        return asyncio.run(run())


class Controllers:
    """In place of TransferQueue's actor class: makes ours where a service is set, and theirs otherwise."""

    def __init__(self, theirs: Any) -> None:
        self._theirs = theirs
        self.settings: Settings | AdapterError | None = None

    def options(self, **options: Any) -> Any:
        """As Ray's."""
        settings = self.settings
        if settings is None:
            return self._theirs.options(**options)
        return Made(settings, options)

    def remote(self, *arguments: Any, **named: Any) -> Any:
        """As Ray's."""
        settings = self.settings
        if settings is None:
            return self._theirs.remote(*arguments, **named)
        return Made(settings, {}).remote(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._theirs, name)


class Made:
    """The actor class with its options."""

    def __init__(self, settings: Settings | AdapterError, options: dict[str, Any]) -> None:
        self._settings, self._options = settings, options

    def remote(self, sampler: Any = None, polling_mode: bool = False) -> Any:
        """The actor. NoService unless the service answers; UnsupportedSampler; the error of a failed installation."""
        if isinstance(self._settings, AdapterError):
            raise self._settings
        import ray

        spec = {"name": "sequential"} if sampler is None else spec_of(sampler)
        info = HttpServerInfo(self._settings, spec, bool(polling_mode))
        check(self._settings)
        return ray.remote(num_cpus=0)(StandIn).options(**self._options).remote(info)


def check(settings: Settings, retries: Retries = FEW) -> None:
    """NoService unless the service answers. From a thread of its own, since a loop may be running here."""
    with Client(settings.url, timeout=settings.timeout_s, retries=retries) as client:
        try:
            client.server()
        except (ConnectionLost, Problem, UnreadableReply) as error:
            raise NoService(
                f"no batchmeta service at {settings.url} ({error}): start one there, correct BATCHMETA_URL, or unset "
                "it to go back to TransferQueue's own controller"
            ) from error
