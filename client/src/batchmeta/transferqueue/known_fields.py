"""Which fields a partition has, as far as this client knows: so a conflict is seen before a byte is written.

What is known may be old; whoever finds a conflict in it asks the service before it says so.
"""

from collections.abc import Iterable, Mapping

from ..exchange import keep
from ..schema import FieldSchema


class KnownFields:
    """Schemas by partition, of not too many partitions."""

    def __init__(self) -> None:
        self._partitions: dict[str, Mapping[str, FieldSchema]] = {}

    def knows(self, partition: str, names: Iterable[str]) -> bool:
        """All of these fields of the partition are known."""
        return self.of(partition).keys() >= set(names)

    def of(self, partition: str) -> Mapping[str, FieldSchema]:
        """The schemas by field, empty where nothing is known."""
        return self._partitions.get(partition, {})

    def learn(self, partition: str, schemas: Mapping[str, FieldSchema] | None) -> None:
        """What a reply told of all fields of the partition."""
        keep(self._partitions, partition, {} if schemas is None else dict(schemas))

    def forget(self, partition: str) -> None:
        """The partition was deleted."""
        self._partitions.pop(partition, None)
