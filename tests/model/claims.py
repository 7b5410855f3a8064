"""Claims against the model: which rows go out, which claims are repeated, and which calls may wait for more."""

from typing import Any

from core.state.leases import number_of
from tests.columns import in_full
from tests.model import shares
from tests.model.asked import Asked
from tests.model.by_rank import ByRank
from tests.model.compare import described, shown
from tests.model.memory import Fetch, Told
from tests.model.plain import Partition
from tests.model.production import Model
from tests.model.service import Answer
from tests.model.state import Lease


class Claim(Asked):
    """A claim that is sent: it may wait, and takes what it is given."""

    def ready(self, plain: Model) -> bool:
        if self.name in plain.state.deleted:
            return True
        partition, found = plain.find(self.name), self.known(plain)
        if partition is None:
            return False
        if partition.is_done(self.wanted.task) or partition.stranded(self.wanted.task, self.wanted.fields):
            return True
        if found is not None:
            return bool(found.codes) or found.rows is not None
        return self.is_enough(partition, self.usual(partition))

    def meet(self, answer: Answer, plain: Model, is_last: bool) -> None:
        """It was answered; `is_last`: its time was up, or it did not want to wait."""
        partition = plain.find(self.name)
        if self.name in plain.state.deleted:
            assert answer.code == "partition-cleared"
            return
        found = self.known(plain)
        if partition and found is not None:
            self._meet_again(answer, plain, partition, found)
            return
        least = (self.wanted.min_batch_size if is_last else self.wanted.batch_size) * self.picker.ranks
        if partition and self.is_enough(partition, min(least, self.usual(partition))):
            self._check_picked(answer.body, partition)
            self._hand_out(answer, plain, None)
        else:
            self.check_refused(answer.body, partition or Partition())

    def _meet_again(self, answer: Answer, plain: Model, partition: Partition, found: Told) -> None:
        """Of a key that is known: refused, nothing, the claim that has its rows, or a new one."""
        if found.codes:
            assert answer.code in found.codes, answer
        elif found.rows is None:
            self.check_refused(answer.body, partition)
        else:
            self._check_batch(answer.body, partition, found.rows)
            if found.claim:
                assert answer.body["revision"] == partition.revision
                shares.check_replay(answer.body, found, plain.now)
            else:
                self._hand_out(answer, plain, found)

    def _check_picked(self, body: Any, partition: Partition) -> None:
        assert body["claim"] is not None, body
        indexes, n = body["batch"]["global_indexes"], self.picker.n
        groups = [indexes[at : at + n] for at in range(0, len(indexes), n)]
        self.picker.check(partition, self.takeable(partition), groups, self.wanted.batch_size)
        assert body["batch"]["production_status"] == [1] * len(indexes)
        self._check_batch(body, partition, indexes)

    def _check_batch(self, body: Any, partition: Partition, indexes: list[int]) -> None:
        found, meant = in_full(body["batch"]), described(partition, indexes, list(self.wanted.fields), False)
        assert shown(found) == {member: meant[member] for member in shown(found)}

    def _hand_out(self, answer: Answer, plain: Model, found: Told | None) -> None:
        body = answer.body
        info, indexes = body["claim"], body["batch"]["global_indexes"]
        number = number_of(info["claim_id"])
        assert number == body["revision"] == plain.revision + 1
        assert (info["task"], info["worker"]) == (self.wanted.task, self.wanted.worker)
        fetch = self._fetched(answer, plain, found)
        if self.wanted.lease_s is None:
            assert (info["ack"], info.get("token")) == ("on_dispatch", None)
            plain.consume(self.name, self.wanted.task, indexes, fetch)
            return
        length_s, token, size = self.wanted.lease_s, info["token"], found.size if found else self.picker.n
        lease = Lease(number, self.name, info["task"], info["worker"], token, length_s, size, {}, {})
        plain.lease(self.name, indexes, lease, fetch)
        assert (info["ack"], info["expires_in_s"]) == ("explicit", length_s)
        assert info["attempts"] == list(lease.attempts.values())
        assert info["attempt"] == max(lease.attempts.values(), default=0)

    def _fetched(self, answer: Answer, plain: Model, found: Told | None) -> Fetch | None:
        """What is to be noted now that rows went out; None for a sampler without memory."""
        picker, partition = self.picker, plain.state.partitions[self.name]
        if not isinstance(picker, ByRank):
            return None
        if found is not None:
            return Fetch(picker.key, picker.place)
        split, is_even = answer.splits[answer.body["revision"]], self.usual(partition) > 1
        picker.check_split(partition, self.takeable(partition), split, self.total, is_even)
        assert split[picker.place] == answer.body["batch"]["global_indexes"]
        return shares.first_fetch(self.wanted, picker, split)
