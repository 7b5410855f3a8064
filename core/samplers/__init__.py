"""Samplers, one file each, and the literal table of their names."""

from typing import Any

import msgspec

from ..errors import Invalid
from .contract import Blocking, Sampler
from .grpo_group import GrpoGroup
from .sequential import Sequential

SAMPLERS: dict[str, type[Sequential] | type[GrpoGroup]] = {
    "sequential": Sequential,
    "grpo_group": GrpoGroup,
}

__all__ = ["SAMPLERS", "Blocking", "Sampler", "sampler"]


def sampler(name: str, arguments: dict[str, Any]) -> Sampler:
    """The sampler of that name. Raises Invalid for a name or arguments that are not known."""
    if name not in SAMPLERS:
        raise Invalid.at("body.sampler.name", f"there is no sampler {name!r}: use one of {', '.join(SAMPLERS)}")
    try:
        return msgspec.convert(arguments, SAMPLERS[name])
    except msgspec.ValidationError as error:
        raise Invalid.at("body.sampler", f"{name}: {error}") from error
