"""Samplers of TransferQueue as those of the service (contract#samplers)."""

from collections.abc import Callable, Mapping
from typing import Any

from .errors import UnsupportedSampler

_RANKED = ("dp_rank", "batch_index")


def spec_of(sampler: Any) -> dict[str, Any]:
    """The spec of a sampler object or class. A class may name its own: `batchmeta_sampler = {"name": …}`.

    UnsupportedSampler for one that the service has no counterpart of.
    """
    given = sampler() if isinstance(sampler, type) else sampler
    own = getattr(given, "batchmeta_sampler", None)
    if isinstance(own, Mapping) and "name" in own:
        return dict(own)
    name = type(given).__name__
    made = _SPECS.get(name) if type(given).__module__.startswith("transfer_queue.") else None
    if made is None:
        raise UnsupportedSampler(
            f"{name}: fetches run in the service, which does not run samplers of its callers. Write it as a sampler of "
            "the service (docs/how-to/own-sampler.md) and name it in a class attribute batchmeta_sampler = "
            '{"name": "…"}, or unset BATCHMETA_URL'
        )
    return made(given)


def claim_sampler(spec: Mapping[str, Any], config: Mapping[str, Any] | None) -> dict[str, Any]:
    """The sampler of one claim, from the spec and the `sampling_config` of the fetch."""
    given = config or {}
    ranked = {name: given[name] for name in _RANKED if given.get(name) is not None}
    name = spec["name"]
    if name == "grpo_group" and len(ranked) == len(_RANKED):
        return {**spec, "name": "rank_aware", **ranked}
    if name == "seqlen_balanced":
        return {**spec, **dict.fromkeys(_RANKED, 0), **ranked}
    if name == "rank_aware":
        return {**spec, **ranked}
    return dict(spec)


def _seqlen_balanced(sampler: Any) -> dict[str, Any]:
    return {
        "name": "seqlen_balanced",
        "n_samples_per_prompt": sampler.n_samples_per_prompt,
        "dp_size": sampler.dp_size,
        "weight": "total_lengths",
        "weight_default": 1,
        "group_by": "position",
    }


_SPECS: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "SequentialSampler": lambda _: {"name": "sequential"},
    "GRPOGroupNSampler": lambda sampler: {
        "name": "grpo_group",
        "n_samples_per_prompt": sampler.n_samples_per_prompt,
        "group_by": "position",
    },
    "RankAwareSampler": lambda _: {"name": "rank_aware"},
    "SeqlenBalancedSampler": _seqlen_balanced,
}
