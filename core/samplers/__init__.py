"""The samplers, one file each, and the table of their names. An operator's own are added at the start, see `own`."""

from collections.abc import Mapping
from typing import Any

import msgspec

from core.decode_errors import fault_of
from core.errors import Invalid

from .by_rank import ByRank
from .contract import Blocking, Sampler
from .custom import Own
from .grpo_group import GrpoGroup
from .lifo import Lifo
from .priority import Priority
from .random import Random
from .rank_aware import RankAware
from .seqlen_balanced import SeqlenBalanced
from .sequential import Sequential
from .token_budget import TokenBudget

SAMPLERS: dict[str, type[Sampler]] = {
    "sequential": Sequential,
    "grpo_group": GrpoGroup,
    "rank_aware": RankAware,
    "seqlen_balanced": SeqlenBalanced,
    "token_budget": TokenBudget,
    "priority": Priority,
    "random": Random,
    "lifo": Lifo,
}

__all__ = ["SAMPLERS", "Blocking", "ByRank", "Sampler", "sampler"]


def sampler(name: str, arguments: Mapping[str, Any], own: Mapping[str, type[Sampler]] | None = None) -> Sampler:
    """The sampler of that name, `own` ones included. Raises Invalid for a name or arguments that are not known."""
    known = {**SAMPLERS, **(own or {})}
    if name not in known:
        raise Invalid.at("body.sampler.name", f"there is no sampler {name!r}: use one of {', '.join(known)}")
    try:
        found: Sampler = msgspec.convert(arguments, known[name])
    except msgspec.ValidationError as error:
        fault = fault_of(error)
        raise Invalid.at(f"body.sampler{fault.place}", f"{name}: {fault.told(known[name])}") from error
    return found if name in SAMPLERS else Own(name, found)
