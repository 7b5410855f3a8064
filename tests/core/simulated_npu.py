"""A device called `npu` that is not there: torch's Python backend for PrivateUse1, each operation run on the CPU.

Only what `core.state.cells.torch_readiness` uses is registered, so an operation that a real device may lack
is noticed.
`start()` is for a process of its own: a backend can be named once. Design: pytorch's own test of the Python backend.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

OPERATIONS = (
    "index_select",
    "bitwise_and.Tensor",
    "eq.Tensor",
    "all.dim",
    "index_copy_",
    "as_strided",
    "zero_",
    "fill_.Scalar",
)


class NpuTensor(torch.Tensor):
    """A tensor whose device says `npu`; `held` is where its values really are."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> "NpuTensor":
        shell = torch._C._acc.create_empty_tensor(held.shape, held.dtype)
        shell.__class__ = cls
        return shell

    def __init__(self, held: torch.Tensor) -> None:
        self.held = held


class NpuModule:
    """What `torch.npu` is: one device."""

    def is_available(self) -> bool:
        return True

    def device_count(self) -> int:
        return 1

    def current_device(self) -> int:
        return 0

    def _is_in_bad_fork(self) -> bool:
        return False


def unwrap(value: Any) -> Any:
    return value.held if isinstance(value, NpuTensor) else value


def on_cpu(operation: Callable[..., Any]) -> Callable[..., Any]:
    """`operation` for npu tensors: computed on the CPU, its result an npu tensor again."""

    def run(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("device", None)
        kwargs.pop("pin_memory", None)
        result = operation(*map(unwrap, args), **{name: unwrap(value) for name, value in kwargs.items()})
        is_in_place = isinstance(args[0], NpuTensor) and result is args[0].held
        return args[0] if is_in_place else NpuTensor(result)

    return run


def empty(size: Any, dtype: Any = None, **_: Any) -> Any:
    return NpuTensor(torch.empty(size, dtype=dtype))


def empty_strided(size: Any, _stride: Any, dtype: Any = None, **_: Any) -> Any:
    return NpuTensor(torch.empty(size, dtype=dtype))


def copy_between(source: Any, target: Any, non_blocking: bool = False) -> Any:
    """Copies to, from and within the device."""
    unwrap(target).copy_(unwrap(source))
    return target


def start() -> torch.library.Library:
    """Make the device known; keep the result as long as it is used."""
    _setup_privateuseone_for_python_backend("npu", backend_module=NpuModule())
    library = torch.library.Library("aten", "IMPL")
    for name in OPERATIONS:
        packet, _, overload = name.partition(".")
        operation = getattr(getattr(torch.ops.aten, packet), overload or "default")
        library.impl(name, on_cpu(operation), dispatch_key="PrivateUse1")
    library.impl("empty.memory_format", empty, dispatch_key="PrivateUse1")
    library.impl("empty_strided", empty_strided, dispatch_key="PrivateUse1")
    library.impl("_copy_from", copy_between, dispatch_key="PrivateUse1")
    return library
