"""In a process that asks for it, the simulated NPU is there before any engine is; it can be started only once."""

from tests.core.conftest import NPU as NPU
