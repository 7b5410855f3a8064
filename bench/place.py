"""What a case gets to run with: its scale, scratch space, data, peers, and a way to report progress."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from . import profile
from .peers.peer import Peer, PeerMissing, Rate, Rated, Timed
from .profile import Backend, Profile
from .scale import Scale
from .server import Server, server

BEFORE, SEED = "0.1.9", "0.1.11"
Tell = Callable[[str], None]


class PeerLike(Protocol):
    """One version of TransferQueue in a process of its own (bench.peers)."""

    def versions(self) -> dict[str, str]: ...
    def load(self, profile: Path, rows: int) -> object: ...
    def result(self, rows: int) -> dict[str, Any]: ...
    def time(self, case: Timed, rows: int, calls: int) -> list[float]: ...
    def rate(self, case: Rated, seconds: float, at_once: int) -> Rate: ...
    def close(self) -> None: ...


StartPeer = Callable[[str, Tell], PeerLike]


class Place:
    """Made once per run. Peers are started when a case first asks for one, and `close` ends them."""

    def __init__(self, scale: Scale, scratch: Path, tell: Tell, start: StartPeer | None = Peer.start) -> None:
        self.scale, self.scratch, self.tell = scale, scratch, tell
        self.found: dict[str, dict[str, str] | str] = {}
        self._start, self._peers, self._profiles = start, dict[str, PeerLike](), dict[tuple[int, Backend], Profile]()
        self._stack = ExitStack()
        self._shared: Server | None = None

    def peer(self, version: str) -> PeerLike | None:
        """This version, or None; `found` has what it runs on, or why it is not there."""
        if self._start is None or isinstance(self.found.get(version), str):
            return None
        if version not in self._peers:
            self.tell(f"starting TransferQueue {version}")
            try:
                self._peers[version] = self._start(version, self.tell)
                self.found[version] = self._peers[version].versions()
            except PeerMissing as error:
                self.found[version] = str(error)
        return self._peers.get(version)

    def loaded(self, version: str, rows: int, backend: Backend) -> PeerLike | None:
        """As `peer`, a fresh state with the first `rows` rows of the profile in it."""
        peer = self.peer(version)
        if peer is not None:
            peer.load(self.file(rows, backend), rows)
        return peer

    def lacks(self, version: str) -> str:
        """Why `peer` returned None, for the table."""
        return str(self.found.get(version, ""))

    def profile(self, rows: int, backend: Backend = "const") -> Profile:
        """The data, made once."""
        if (rows, backend) not in self._profiles:
            self._profiles[rows, backend] = profile.make(rows, backend)
        return self._profiles[rows, backend]

    def file(self, rows: int, backend: Backend) -> Path:
        """The same as a file."""
        path = self.scratch / f"profile_{rows}_{backend}.json"
        return path if path.exists() else self.profile(rows, backend).save(path)

    def folder(self, name: str) -> Path:
        """An empty folder."""
        count = sum(1 for _ in self.scratch.glob(f"{name}-*"))
        path = self.scratch / f"{name}-{count}"
        path.mkdir()
        return path

    @contextmanager
    def server(self, name: str) -> Iterator[Server]:
        """A running service: one of its own for each case that is judged, else the same for all of them."""
        if self.scale.is_judged:
            with server(self.folder(name)) as ours:
                yield ours
            return
        if self._shared is None:
            self._shared = self._stack.enter_context(server(self.folder("shared")))
        yield self._shared

    def rounds(self, label: str) -> Iterator[int]:
        """Round by round, shown as it goes."""
        for number in range(self.scale.rounds):
            self.tell(f"{label}, round {number + 1} of {self.scale.rounds}")
            yield number

    def dismiss(self) -> None:
        """End the peers, so that they do not slow down measurements without them."""
        with ExitStack() as stack:
            for peer in self._peers.values():
                stack.callback(peer.close)
            self._peers = {}

    def close(self) -> None:
        """End all that was started."""
        with self._stack:
            self.dismiss()
