"""In a process that asks for it, the simulated NPU is there before any engine is."""

import os

from .world import DEVICE_VARIABLE

if os.environ.get(DEVICE_VARIABLE) == "npu":
    from .simulated_npu import start

    NPU = start()
else:
    NPU = None
