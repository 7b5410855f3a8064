"""Ray for a child of a pipe. It runs in the venv with TransferQueue and our client."""

import os

import ray

from .ray_peer import FOLDER


def start_ray() -> None:
    """Ray on this machine alone. Processors are only counted: each actor of TransferQueue asks for one."""
    ray.init(address="local", num_cpus=16, include_dashboard=False, log_to_driver=False, _temp_dir=os.environ[FOLDER])
