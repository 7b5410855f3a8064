"""The page: all lines, all distributions, the same bytes from the same results, hand-written notes left alone."""

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from bench.outcome import Line
from bench.report import page, publish
from bench.results import Results
from bench.scale import FULL
from bench.turns import Runs, distribution

TIMES = Runs(((0.001, 0.002), (0.003, 0.004)))


@pytest.fixture
def found(tmp_path: Path) -> dict[str, Any]:
    """Results with the cases that are drawn."""
    sides = {"ours": TIMES.seconds(), "0.1.9": TIMES.seconds(), "0.1.11": TIMES.seconds()}
    results = Results(tmp_path / "results.json", FULL, keep=False)
    lag = distribution([0.001, 0.002, 0.02])
    cases: dict[str, Any] = {
        "generate": {"generate": {"512": sides, "1024": sides}},
        "end_to_end": {"by_rows": {"1": sides, "512": sides}},
        "loop": {"workers": 8, "distribution": lag, "idle": lag},
    }
    line = Line("a | b", "2 ms", "1 ms", 1.5, ">= 2 x", "NOT MET", "why")
    for name, data in cases.items():
        results.found["cases"][name] = {"seconds": 1.0, "lines": [asdict(line)], "data": data}
    results.found["peers"] = {"0.1.9": {"TransferQueue": "0.1.9"}, "0.1.11": "no network"}
    results._write()
    return results.found


def test_it_has_every_line_and_every_distribution(found: dict[str, Any]) -> None:
    text = page(found)
    assert text.count("| a \\| b (why) | 2 ms | 1 ms | 1.50 x | >= 2 x | **NOT MET** |") == 3
    assert "| generate | generate, 512, ours | 2.5 | 4.0 | 1.5 to 3.5 | 4 | 2 |" in text
    assert "TransferQueue 0.1.11: no network." in text
    assert found["machine"]["cpu"] in text
    assert "torch " in text


def test_it_is_published_with_its_data_and_plots_and_leaves_notes_alone(found: dict[str, Any], tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "benchmarks-notes.md").write_text("by hand")
    publish(tmp_path / "results.json", docs)
    first = {path.name: path.read_bytes() for path in docs.iterdir()}
    assert sorted(first) == [
        "benchmarks-lag.svg",
        "benchmarks-latency.svg",
        "benchmarks-notes.md",
        "benchmarks.json",
        "benchmarks.md",
    ]
    publish(docs / "benchmarks.json", docs)
    assert {path.name: path.read_bytes() for path in docs.iterdir()} == first
    assert first["benchmarks-notes.md"] == b"by hand"
    for target in re.findall(r"\]\(([^)]+)\)", first["benchmarks.md"].decode()):
        assert target in first


def test_plots_name_both_sides(found: dict[str, Any], tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    publish(tmp_path / "results.json", docs)
    texts = re.findall(r">([^<>]+)</text>", (docs / "benchmarks-latency.svg").read_text())
    assert {"batchmeta", "TransferQueue 0.1.9", "TransferQueue 0.1.11"} <= set(texts)


def test_nothing_in_it_names_the_machine_or_its_user(found: dict[str, Any]) -> None:
    assert set(found["machine"]) == {"cpu", "cores", "memory_gib", "kernel"}
    assert str(Path.home()) not in json.dumps(found)
