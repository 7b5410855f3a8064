"""A peer that answers from the profile, at whatever speed a test gives it. No test lives here."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.cases.equality import expected
from bench.peers.peer import PeerMissing, Rate
from bench.place import PeerLike
from bench.profile import Profile
from bench.scale import SMOKE

TINY = replace(SMOKE, name="tiny", rounds=2, calls=2, tail_calls=4, seconds=0.1, sizes=(1, 8), large=8, is_judged=True)


class FakePeer:
    """Every call takes `seconds`; `spoil` changes a result before it is given."""

    def __init__(self, seconds: float = 1.0, spoil: Any = None) -> None:
        self.seconds, self.spoil = seconds, spoil
        self.asked: list[str] = []
        self.is_closed = False

    def versions(self) -> dict[str, str]:
        return {"TransferQueue": "0.0"}

    def load(self, profile: Path, rows: int) -> None:
        self.profile = Profile(**json.loads(profile.read_text()))
        assert len(self.profile.keys) == rows

    def result(self, rows: int) -> dict[str, Any]:
        # Through JSON, as the pipe would have it; its indexes need not begin with 0.
        found = json.loads(json.dumps(expected(self.profile)))
        found["global_indexes"] = [index + 100 for index in found["global_indexes"]]
        if self.spoil is not None:
            self.spoil(found)
        return found

    def time(self, case: str, rows: int, calls: int) -> list[float]:
        self.asked.append(case)
        return [self.seconds] * calls

    def rate(self, case: str, seconds: float, at_once: int) -> Rate:
        self.asked.append(case)
        return Rate(1 / self.seconds, 1)

    def close(self) -> None:
        self.is_closed = True


def no_peer(version: str, tell: Any) -> PeerLike:
    raise PeerMissing(f"TransferQueue {version} cannot be installed: no network")
