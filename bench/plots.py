"""The two plots of docs/benchmarks.md, as SVG: latency by batch size, and how late the event loop is."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .place import BEFORE, SEED

OURS = "ours"
# Told apart without colour too: each has its marker.
SIDES = {
    BEFORE: (f"TransferQueue {BEFORE}", "#8a8a8a", "s"),
    SEED: (f"TransferQueue {SEED}", "#c2571a", "^"),
    OURS: ("batchmeta", "#1f6f8b", "o"),
}
LIMITS_MS = (5, 25)


def latency(found: dict[str, Any], path: Path) -> None:
    """Median (and p99 as a bar above it) by rows, in process and over the wire."""
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    _by_rows(left, found["cases"]["generate"]["data"]["generate"], "batch meta, in process")
    _by_rows(right, found["cases"]["end_to_end"]["data"]["by_rows"], "client call to decoded batch meta, over the wire")
    _save(figure, path)


def _by_rows(axes: Axes, by_rows: dict[str, Any], title: str) -> None:
    for side, (label, color, marker) in SIDES.items():
        points = [(int(rows), sides[side]) for rows, sides in by_rows.items() if side in sides]
        if not points:
            continue
        rows, medians = [at for at, _ in points], [figures["median_ms"] for _, figures in points]
        tails = [max(0.0, figures["p99_ms"] - figures["median_ms"]) for _, figures in points]
        axes.errorbar(
            rows, medians, yerr=[[0.0] * len(tails), tails], label=label, color=color, marker=marker, capsize=3
        )
    axes.set(title=title, xlabel="rows", ylabel="ms, median to p99", xscale="log", yscale="log")
    axes.set_xticks([int(rows) for rows in by_rows], [f"{int(rows):,}" for rows in by_rows])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter("{x:g}")
    _finish(axes)


def lag(found: dict[str, Any], path: Path) -> None:
    """How much of all ticks was at most so late, idle and under load, with the limits."""
    data = found["cases"]["loop"]["data"]
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    for name, label, color in (("idle", "idle", "#8a8a8a"), ("distribution", f"{data['workers']} workers", "#1f6f8b")):
        # Drawn as the share that is later: the tail is what there is to see.
        later = [max(100 - percent, 0.01) for percent in data[name]["percent"]]
        axes.plot([max(ms, 0.001) for ms in data[name]["ms"]], later, label=label, color=color)
    for limit, what in zip(LIMITS_MS, ("p99", "max"), strict=True):
        axes.axvline(limit, color="#c2571a", linestyle="--", linewidth=1)
        axes.annotate(f"{what} must be below ", (limit, 0.011), rotation=90, ha="right", va="bottom", fontsize=8)
    axes.set(title="lag of a 1 ms ticker on the event loop", xlabel="ms late", ylabel="% of ticks later than that")
    axes.set(xscale="log", yscale="log", ylim=(0.01, 110))
    axes.set_xlim(left=0.05)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:g}")
    _finish(axes)
    _save(figure, path)


def _finish(axes: Axes) -> None:
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)


def _save(figure: Figure, path: Path) -> None:
    # The same results give the same file: no date, no random ids.
    with mpl.rc_context({"svg.hashsalt": "batchmeta", "svg.fonttype": "none"}):
        figure.savefig(path, format="svg", metadata={"Date": None})
