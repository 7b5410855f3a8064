"""The results file: one JSON object, written whole after every case, so that a stopped run loses no result."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .machine import machine, now, versions
from .outcome import Line, Outcome
from .scale import Scale


class Unwritable(Exception):
    """Results cannot be kept; one line that says where and why."""


class Results:
    """With `keep`, the results of an earlier run of the same scale stay until their cases are run again."""

    def __init__(self, path: Path, scale: Scale, keep: bool) -> None:
        self.path = path
        earlier = _read(path) if keep else {}
        same = earlier if earlier.get("scale") == scale.name else {}
        self.found: dict[str, Any] = {
            "date": now(),
            "scale": scale.name,
            "machine": machine(),
            "versions": versions(),
            "peers": same.get("peers", {}),
            "cases": same.get("cases", {}),
        }
        self._write()

    def add(self, name: str, outcome: Outcome, seconds: float, peers: dict[str, Any]) -> None:
        """One more case."""
        lines = [asdict(line) for line in outcome.lines]
        self.found["cases"][name] = {"seconds": round(seconds, 1), "lines": lines, "data": outcome.data}
        self.found["peers"] |= peers
        self._write()

    def lines(self, names: list[str]) -> list[Line]:
        """Of these cases, as far as they are there."""
        cases = self.found["cases"]
        return [Line(**line) for name in names if name in cases for line in cases[name]["lines"]]

    def _write(self) -> None:
        # Whole or not at all: a stop in the middle of a write must not cost the earlier cases.
        beside = self.path.with_name(self.path.name + ".new")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            beside.write_text(json.dumps(self.found, indent=1) + "\n")
            beside.replace(self.path)
        except OSError as error:
            raise Unwritable(f"cannot write results to {self.path}: {error.strerror}") from error


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
