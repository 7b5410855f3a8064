"""From one results file to docs/benchmarks.md, its two plots and its data: `python -m bench.report [RESULTS]`.

It overwrites all of its files. Notes written by people are in docs/benchmarks-notes.md, which it never changes.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .outcome import Line
from .table import ratio_text

DOCS = Path(__file__).resolve().parent.parent / "docs"
Json = Any
HEAD = """\
# Benchmarks

<!-- Written by `python -m bench.report` from benchmarks.json: change that or bench/, not this page. -->

`./scripts/bench` measures all of this anew ([how, and what it says](benchmarks-notes.md)). Ours and TransferQueue's run
in turns on the same machine and the same rows, at least five rounds; what is judged is the median of the rounds'
ratios. Results of both sides are compared cell by cell before anything is timed. One batch is 1,024 samples x 28
fields of a verl GRPO step.
"""
COLUMNS = ("what", "theirs", "ours", "ratio", "must reach", "")


def publish(results: Path, docs: Path = DOCS) -> None:
    """Write what docs/benchmarks.json and docs/benchmarks.md hold, and the plots, into `docs`."""
    from .plots import lag, latency

    found = json.loads(results.read_text())
    (docs / "benchmarks.json").write_text(json.dumps(found, indent=1) + "\n")
    latency(found, docs / "benchmarks-latency.svg")
    lag(found, docs / "benchmarks-lag.svg")
    (docs / "benchmarks.md").write_text(page(found))


def page(found: Json) -> str:
    """The text of docs/benchmarks.md."""
    parts = [HEAD, *_machine(found), "## Results\n", _results(found), "## Distributions\n", *_distributions(found)]
    parts += ["![Latency by batch size](benchmarks-latency.svg)\n", "![Lag of the event loop](benchmarks-lag.svg)\n"]
    return "\n".join(parts)


def _machine(found: Json) -> Iterator[str]:
    machine, versions = found["machine"], found["versions"]
    hardware = f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB, Linux {machine['kernel']}"
    software = ", ".join(f"{name} {version}" for name, version in versions.items())
    yield f"Measured {found['date']} on {hardware}; {software}.\n"
    for version, packages in found["peers"].items():
        text = packages if isinstance(packages, str) else ", ".join(f"{name} {at}" for name, at in packages.items())
        yield f"TransferQueue {version}: {text}.\n"


def _results(found: Json) -> str:
    rows = [_row(Line(**line)) for case in found["cases"].values() for line in case["lines"]]
    return _table(COLUMNS, rows)


def _row(line: Line) -> tuple[str, ...]:
    state = f"**{line.state}**" if line.state == "NOT MET" else line.state
    what = f"{line.row} ({line.note})" if line.note else line.row
    return (what, line.theirs, line.ours, ratio_text(line), line.must, state)


def _distributions(found: Json) -> Iterator[str]:
    """Every timed bucket of every case: a mean would hide what matters."""
    columns = ("case", "bucket", "median ms", "p99 ms", "rounds' medians, ms", "calls", "rounds")
    yield _table(columns, [row for name, case in found["cases"].items() for row in _timings(name, "", case["data"])])


def _timings(case: str, bucket: str, data: Json) -> Iterator[tuple[str, ...]]:
    if not isinstance(data, dict):
        return
    if "spread_ms" in data:
        low, high = data["spread_ms"]
        numbers = (data["median_ms"], data["p99_ms"], f"{low} to {high}", data["calls"], data["rounds"])
        yield (case, bucket, *map(str, numbers))
        return
    for name, inner in data.items():
        yield from _timings(case, f"{bucket}, {name}" if bucket else name, inner)


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [columns, ("---",) * len(columns), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


if __name__ == "__main__":
    publish(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS / "benchmarks.json")
