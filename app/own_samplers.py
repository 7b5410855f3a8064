"""Loads the operator's own samplers (`--sampler name=package.module:Class`) at start. No caller can name a class."""

from collections.abc import Iterable
from importlib import import_module
from typing import cast

from core.samplers import SAMPLERS, Sampler
from core.samplers.custom import flaw

Named = tuple[str, str, str]
# What a module may raise while it is imported, as far as it can be told in a line.
_BREAKS = (
    ArithmeticError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)


class SamplerRefused(ValueError):
    """A sampler cannot be used; the message is one line that says why."""


def load(named: Iterable[Named]) -> dict[str, type[Sampler]]:
    """The classes of (name, module, class), by name. Raises SamplerRefused."""
    out: dict[str, type[Sampler]] = {}
    for name, module, kind in named:
        if name in SAMPLERS:
            raise SamplerRefused(f"--sampler {name}: there is a sampler of that name already, choose another")
        out[name] = _loaded(f"--sampler {name}={module}:{kind}", module, kind)
    return out


def _loaded(said: str, module: str, kind: str) -> type[Sampler]:
    try:
        found: object = getattr(import_module(module), kind)
    except _BREAKS as error:
        told = " ".join(str(error).split())
        raise SamplerRefused(f"{said}: cannot be loaded: {type(error).__name__}: {told}") from error
    why = flaw(found)
    if why is not None:
        raise SamplerRefused(f"{said}: {why}")
    return cast("type[Sampler]", found)
