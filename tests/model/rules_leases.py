"""Rules about leases: what becomes of the rows that a claim with `ack: explicit` handed out."""

from hypothesis import strategies as st

from core.operations.leases import Ack
from core.state.leases import claim_id, number_of
from tests.model import calls, draws
from tests.model.compare import seen
from tests.model.machine import Machine
from tests.model.plain import OPEN
from tests.model.state import Lease

NOBODY = Lease(987_654, "a", "train", None, "no token", 1.0, 1, {}, {})


class Leasing(Machine):
    """Ack, extend, release of a worker; who holds what."""

    def some_lease(self, data: st.DataObject) -> Lease:
        """Mostly an open one; sometimes closed, and rarely none that there is."""
        held, closed = list(self.plain.state.leases.values()), list(self.plain.state.closed.values())
        return data.draw(st.sampled_from([*held * 4, *closed, NOBODY]))

    def ack(self, _: str, data: st.DataObject) -> None:
        lease = self.some_lease(data)
        said = data.draw(acks(lease))
        accept, release = said.accept, list(said.release)
        done = self.both(
            calls.ack(claim_id(lease.number), said),
            lambda: (
                self.plain.ack(
                    lease.number,
                    said.token,
                    None if accept is None else list(accept),
                    release,
                    dict(said.reject),
                    said.counts,
                ),
                self.plain.revision_of(lease.partition),  # before who waits makes another
            ),
        )
        if done:
            body, (meant, revision) = done
            assert tuple(body[member] for member in ("accepted", "released", "rejected", "open")) == meant
            assert (body["partition_id"], body["revision"]) == (lease.partition, revision)

    def extend(self, _: str, data: st.DataObject) -> None:
        lease, length_s = self.some_lease(data), data.draw(st.sampled_from([2.0, 8.0]))
        token = data.draw(tokens(lease))
        done = self.both(
            calls.extend(claim_id(lease.number), token, length_s),
            lambda: self.plain.extend(lease.number, token, length_s),
        )
        if done:
            assert done[0] == {"open": len(done[1].open), "expires_in_s": length_s if done[1].fates else 0.0}

    def release_worker(self, _: str, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from(["w", "v", "nobody"]))
        done = self.both(calls.release_worker(worker), lambda: self.plain.release_worker(worker))
        if done:
            body, (rows, numbers) = done
            assert (body["released"], list(map(number_of, body["claims"]))) == (rows, numbers)

    def look_at_claims(self, name: str, data: st.DataObject) -> None:
        task, worker = data.draw(st.none() | draws.tasks), data.draw(draws.workers)
        there = self.service.look(calls.list_claims(name, task, worker))["claims"]
        prefix = data.draw(draws.prefixes)
        held = self.plain.state.leases.values()
        assert there == [
            seen(lease, self.plain.now)
            for lease in held
            if lease.partition == name and task in (None, lease.task) and worker in (None, lease.worker)
        ]
        of_prefix = self.service.look(calls.list_claims(prefix=prefix))["claims"]
        assert of_prefix == [seen(lease, self.plain.now) for lease in held if lease.partition.startswith(prefix)]
        assert self.service.do(calls.get_claim(claim_id(NOBODY.number))).code == "claim-not-found"


def tokens(lease: Lease) -> st.SearchStrategy[str]:
    return st.sampled_from([lease.token] * 9 + ["another's"])


@st.composite
def acks(draw: st.DrawFn, lease: Lease) -> Ack:
    """Mostly groups that are open, each with one fate; else any rows, of other claims too."""
    rows = list(lease.fates)
    groups = [rows[at : at + lease.size] for at in range(0, len(rows), lease.size)]
    if draw(st.integers(0, 5)) == 0:
        groups = [[index] for index in draw(st.lists(st.sampled_from([*rows * 3, 0, 1, 99]), max_size=4))]
    elif draw(st.booleans()):
        groups = [group for group in groups if all(lease.fates[index] == OPEN for index in group)]
    fates = [(draw(st.sampled_from(["accept", "accept", "release", "reject", ""])), group) for group in groups]
    accept, release, reject = (
        [index for fate, group in fates if fate == verb for index in group] for verb in ("accept", "release", "reject")
    )
    everything = draw(st.integers(0, 3)) == 0
    reasons = [(index, draw(st.sampled_from(["empty", "too long"]))) for index in reject]
    return Ack(draw(tokens(lease)), None if everything else accept, release, reasons, draw(st.booleans()))
