"""Samplers, one file each, and the literal table of their names."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ..errors import Invalid
from .contract import Blocking, Sampler
from .grpo_group import GrpoGroup
from .lifo import Lifo
from .priority import Priority
from .random import Random
from .sequential import Sequential
from .token_budget import TokenBudget

SAMPLERS: dict[str, type[Sampler]] = {
    "sequential": Sequential,
    "grpo_group": GrpoGroup,
    "token_budget": TokenBudget,
    "priority": Priority,
    "random": Random,
    "lifo": Lifo,
}
_AT = re.compile(r"^(.*?)(?: - at `\$(.*)`)?$", re.DOTALL)

__all__ = ["SAMPLERS", "Blocking", "Sampler", "sampler"]


def sampler(name: str, arguments: Mapping[str, Any]) -> Sampler:
    """The sampler of that name. Raises Invalid for a name or arguments that are not known."""
    if name not in SAMPLERS:
        raise Invalid.at("body.sampler.name", f"there is no sampler {name!r}: use one of {', '.join(SAMPLERS)}")
    try:
        return msgspec.convert(arguments, SAMPLERS[name])
    except msgspec.ValidationError as error:
        raise _told(name, str(error)) from error


def _told(name: str, message: str) -> Invalid:
    match = _AT.match(message)
    text, place = (match[1], match[2] or "") if match else (message, "")
    return Invalid.at(f"body.sampler{place}", f"{name}: {text[:1].lower()}{text[1:]}")
