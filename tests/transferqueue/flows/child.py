"""Runs flows on one plane: `python -m tests.transferqueue.flows.child`, one JSON object a line each way.

It runs in a venv that holds TransferQueue and our client. With a URL, batchmeta's adapter is installed first; without
one, TransferQueue keeps its own controller. Ray is started once, TransferQueue once for each configuration.
"""

import os
import traceback
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import transfer_queue as tq
from omegaconf import OmegaConf

from bench.peers.ray_child import start_ray
from bench.peers.ray_peer import FOLDER
from bench.peers.transferqueue import Json, answering, serve

from .log import Log
from .table import FLOWS

SHOWN_FRAMES = 3
CONTROLLERS: Mapping[str, Json] = {
    "sequential": {},
    "polling": {"sampler": tq.GRPOGroupNSampler(n_samples_per_prompt=2), "polling_mode": True},
}


class Plane:
    """Ray, and TransferQueue on it."""

    def __init__(self) -> None:
        self._backend: Json = {}
        self._running = ""
        self._is_theirs = True
        self._empty = ""

    def start(self, url: str | None, backend: str, port: int) -> Json:
        """Start Ray; the storage is SimpleStorage, or an openYuanrong worker at `port`."""
        self._backend = {"storage_backend": backend} | (
            {"Yuanrong": {"auto_init": False, "worker_port": port}} if port else {}
        )
        start_ray()
        self._is_theirs = url is None
        if url is not None:
            from batchmeta.transferqueue import install

            install(url)
        return {}

    def run(self, flow: str) -> Json:
        """The log of one flow. All flows clean up after themselves, so that is the last step of each."""
        chosen = FLOWS[flow]
        self._configure(chosen.controller)
        self._forget()
        log = Log()
        try:
            getattr(import_module(f"{__package__}.{chosen.module}"), chosen.function)(log)
            log.see("left behind", tq.get_client().get_partition_list())
        except Exception as error:
            self.close()  # what this flow left must not be what the next one finds
            raise FlowFailed(f"{type(error).__name__}: {error} ({_where(error)})") from error
        return {"steps": log.steps}

    def _configure(self, controller: str) -> None:
        if controller == self._running:
            return
        self.close()
        conf = {"controller": CONTROLLERS[controller], "backend": self._backend}
        tq.init(OmegaConf.create(conf, flags={"allow_objects": True}))
        self._running = controller
        if self._is_theirs:
            self._empty = f"{os.environ[FOLDER]}/empty.pkl"
            tq.get_client().save_controller_checkpoint(self._empty)

    def _forget(self) -> None:
        """Give TransferQueue's controller the state of one just started.

        It gives indexes of cleared rows to new ones, in any order, and claims go by index: a flow would see its rows
        in an order that depends on the flows before it.
        """
        if self._is_theirs:
            tq.get_client().load_controller_checkpoint(self._empty)

    def close(self) -> Json:
        """End TransferQueue; Ray ends with this process."""
        if self._running:
            self._running = ""
            tq.close()
        return {}


class FlowFailed(Exception):
    """A flow raised what it did not expect; the message says where."""


def _where(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-SHOWN_FRAMES:]
    return ", ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in last)


def main() -> None:
    """Answer until the pipe closes."""
    plane, answers = Plane(), answering()
    serve({"start": plane.start, "run": plane.run, "close": plane.close}, answers)


if __name__ == "__main__":
    main()
