"""TransferQueue's checkpoints of its controller: the state of the service, in the trainer's own folder."""

import asyncio
import json
from pathlib import Path
from typing import Any
from uuid import uuid4

from .errors import AdapterError
from .service import Service


async def save(
    client: Any,
    service: Service,
    path: str,
) -> None:
    """Save the service's state, and what is needed to restore it at `path`."""
    name = f"transferqueue-{uuid4().hex}"
    saved = await service.client.create_checkpoint(name)
    note = {"batchmeta_checkpoint": name, "sha256": saved.sha256, "url": service.settings.url}
    await asyncio.to_thread(Path(path).write_text, json.dumps(note))


async def load(
    client: Any,
    service: Service,
    path: str,
) -> None:
    """Restore the state that `save` left at `path`. AdapterError if the service holds partitions of other jobs too."""
    await _check_alone(service)
    note = json.loads(await asyncio.to_thread(Path(path).read_text))
    await service.client.restore_checkpoint(note["batchmeta_checkpoint"])


async def _check_alone(service: Service) -> None:
    others = [line.partition_id for line in await service.client.partitions() if not service.owns(line.partition_id)]
    if others:
        raise AdapterError(
            f"a restore sets back the whole service, which also holds partitions of other jobs: {others[:5]}. Give "
            "each job that loads checkpoints a service of its own"
        )
