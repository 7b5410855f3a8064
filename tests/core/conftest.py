"""In a process that asks for it, the simulated NPU is there before any engine is."""

import os

from .simulated_npu import start
from .world import DEVICE_VARIABLE

NPU = start() if os.environ.get(DEVICE_VARIABLE) == "npu" else None
