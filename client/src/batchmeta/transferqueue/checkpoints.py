"""TransferQueue's checkpoints of its controller: the state of the service, as a file in the trainer's own folder."""

from hashlib import file_digest
from pathlib import Path
from typing import Any
from uuid import uuid4

from .errors import AdapterError
from .service import Service

PREFIX = "transferqueue-"


async def save(client: Any, service: Service, path: str) -> None:
    """Save the service's state as the file `path`. The service keeps no copy."""
    name = f"{PREFIX}{uuid4().hex}"
    await service.client.create_checkpoint(name)
    try:
        await service.client.download_checkpoint(name, path)
    finally:
        await service.client.delete_checkpoint(name)


async def load(client: Any, service: Service, path: str) -> None:
    """Restore the state of the file that `save` wrote, also into another service.

    AdapterError if the service holds partitions of other jobs too, for a restore sets back all of it. Raises
    FileNotFoundError.
    """
    await _check_alone(service)
    with Path(path).open("rb") as file:  # noqa: ASYNC230  # read once, where the trainer waits for it anyway
        name = f"{PREFIX}{file_digest(file, 'sha256').hexdigest()[:32]}"
    await service.client.upload_checkpoint(name, path)
    try:
        await service.client.restore_checkpoint(name)
    finally:
        await service.client.delete_checkpoint(name)
    service.restart()


async def _check_alone(service: Service) -> None:
    others = [line.partition_id for line in await service.client.partitions() if not service.owns(line.partition_id)]
    if others:
        raise AdapterError(
            f"a restore sets back the whole service, which also holds partitions of other jobs: {others[:5]}. Give "
            "each job that loads checkpoints a service of its own"
        )
