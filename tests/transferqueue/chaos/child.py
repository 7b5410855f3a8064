"""The job at the end of a pipe: `python -m tests.transferqueue.chaos.child`, one JSON object a line each way."""

from collections.abc import Callable, Mapping
from typing import Any

import transfer_queue as tq
from omegaconf import OmegaConf

from batchmeta.transferqueue import install
from bench.peers.ray_child import start_ray
from bench.peers.transferqueue import Json, answering, serve

from .job import Job

TIMEOUT_S, PATIENCE_S = 10.0, 60.0
CONF = {
    "controller": {"polling_mode": True},
    "backend": {"storage_backend": "SimpleStorage", "SimpleStorage": {"num_data_storage_units": 2}},
}


class Child:
    """Its verbs. Ray lives as long as the process, TransferQueue from `begin` to `end`."""

    def __init__(self) -> None:
        self.job = Job()

    def verbs(self) -> Mapping[str, Callable[..., Json]]:
        return {
            "ray": self.ray,
            "begin": self.begin,
            "roll": self.job.roll,
            "train": self.job.train,
            "kill_unit": _told(self.job.kill_unit),
            "clear": _told(self.job.clear),
            "finish": _told(self.job.finish),
            "longest": lambda: {"told": self.job.longest_s},
            "end": self.end,
        }

    def ray(self) -> Json:
        """Start it."""
        start_ray()
        return {}

    def begin(self, url: str) -> Json:
        """TransferQueue on the service, with storage units of its own."""
        install(url, timeout_s=TIMEOUT_S, patience_s=PATIENCE_S)
        tq.init(OmegaConf.create(CONF))
        return {}

    def end(self) -> Json:
        """Close TransferQueue; what the service knows stays."""
        tq.close()
        return {}


def _told(call: Callable[..., Any]) -> Callable[..., Json]:
    return lambda **given: {"told": call(**given)}


def main() -> None:
    """Answer until the pipe closes."""
    child, answers = Child(), answering()
    serve(child.verbs(), answers)


if __name__ == "__main__":
    main()
