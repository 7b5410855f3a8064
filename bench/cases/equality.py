"""Checks cell by cell that TransferQueue 0.1.9, 0.1.11 and ours give the same answers, before anything is timed."""

import json
from typing import Any

from ..child import Child
from ..outcome import Case, Line, Outcome, State
from ..place import BEFORE, SEED, Place
from ..profile import Backend, Json, Profile
from ..server import Server
from ..worker import Worker

BACKENDS: tuple[Backend, ...] = ("const", "distinct")


class ResultsDiffer(Exception):
    """The results for the same rows differ, so the timed work would differ."""


def run(place: Place) -> Outcome:
    """Raises ResultsDiffer at the first cell that differs."""
    sides = dict.fromkeys((BEFORE, SEED), 0)
    with place.server("equality") as ours, Child(Worker, ours.url) as worker:
        for rows in place.scale.sizes:
            for backend in BACKENDS:
                place.tell(f"{rows} rows, {backend} backend meta")
                found = _ours(ours, worker, rows, place.profile(rows, backend), backend)
                for version in sides:
                    sides[version] += _agrees(place, version, rows, backend, found)
    return Outcome([_line(place, version, count) for version, count in sides.items()])


def _ours(ours: Server, worker: Child, rows: int, profile: Profile, backend: Backend) -> dict[str, Json]:
    partition = f"equality_{rows}_{backend}"
    ours.load(partition, profile)
    found: dict[str, Json] = worker.do("result", partition)
    compare("the profile", expected(profile), found)
    return found


def _agrees(place: Place, version: str, rows: int, backend: Backend, found: dict[str, Json]) -> int:
    peer = place.loaded(version, rows, backend)
    if peer is None:
        return 0
    theirs = peer.result(rows)
    first = theirs["global_indexes"][0]
    theirs["global_indexes"] = [index - first for index in theirs["global_indexes"]]
    compare(f"TransferQueue {version}", theirs, found)
    return 1


def _line(place: Place, version: str, count: int) -> Line:
    row = f"results of {version} and ours, cell by cell"
    wanted = len(place.scale.sizes) * len(BACKENDS)
    if count == wanted:
        return Line(row, ours=f"{count} results equal", must="equal", state="met")
    state: State = "not measured" if place.scale.is_judged else "-"
    return Line(row, ours=f"{wanted} equal to the profile", must="equal", state=state, note=place.lacks(version))


def expected(profile: Profile) -> dict[str, Json]:
    """The answer that follows from the profile."""
    rows = len(profile.keys)
    return {
        "global_indexes": list(range(rows)),
        "keys": profile.keys,
        "fields": [field["name"] for field in profile.fields],
        "production_status": [1] * rows,
        "shapes": {field["name"]: field["shapes"] for field in profile.fields},
        "dtypes": {field["name"]: field["dtype"] for field in profile.fields},
        "custom_meta": profile.custom_meta,
        "backend_meta": profile.backend_meta,
    }


def compare(name: str, theirs: dict[str, Json], ours: dict[str, Json]) -> None:
    """Raises ResultsDiffer, naming the first difference. The order of fields does not matter."""
    for part in ours:
        one, other = _sorted(theirs.get(part)), _sorted(ours[part])
        where = difference(one, other, part)
        if where is not None:
            raise ResultsDiffer(f"{name} and ours differ at {where}")


def _sorted(value: Json) -> Json:
    is_names = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return sorted(value) if is_names else value


def difference(one: Any, other: Any, where: str) -> str | None:
    """The first place where two JSON values differ, with both; 1, 1.0 and true are three values."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        pairs = [(f"{where}.{name}", one[name], other[name]) for name in other]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = [(f"{where}[{at}]", a, b) for at, (a, b) in enumerate(zip(one, other, strict=True))]
    else:
        same = type(one) is type(other) and one == other
        return None if same else f"{where}: {_short(one)} against {_short(other)}"
    return next((found for place, a, b in pairs if (found := difference(a, b, place)) is not None), None)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


CASE = Case("equality", "do the results of both sides agree, cell by cell", run, compares=True)
