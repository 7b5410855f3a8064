"""Checkpoints of the trainer and of the service, saved together and taken up together.

A pair has the policy of a version, and the service's state in which just the rows that made it are consumed.
"""

from contextlib import suppress

from batchmeta import CheckpointExists
from crew.clearing import finish
from crew.desk import Desk
from crew.storage import cell_name

from . import progress as versions
from .job import ANSWERS, FIELDS, Job
from .progress import Progress
from .weights import clear_before

KEPT = 2


class NothingToResume(RuntimeError):
    """The folder has no checkpoint of both; the message says what to do."""


async def save_together(desk: Desk, job: Job, progress: Progress) -> None:
    """Save both, and only then clear what was trained before: to go back never needs bytes that are gone.

    Done again after a death in the middle, it does what is left to do.
    """
    version = progress.version
    if not version or version % job.keep_every:
        return
    versions.copy(job.versions, job.kept, version)
    with suppress(CheckpointExists):
        await desk.client.create_checkpoint(versions.name(version))
    await clear_trained(desk, job, progress)
    versions.prune(job.kept, KEPT)
    for old in (await desk.client.checkpoints())[:-KEPT]:
        await desk.client.delete_checkpoint(old.name)


async def clear_trained(desk: Desk, job: Job, progress: Progress) -> None:
    """Clear the answers of the steps since the last checkpoint, and the weights before this one."""
    trained = [int(index) for rows in progress.rows[-job.keep_every :] for index in rows]
    # With tombstones: the prompt of an answer that is gone may come again, where its rollout died before the ack.
    await finish(desk, await desk.client.plan_clear(ANSWERS, global_indexes=trained, tombstone=True))
    await clear_before(desk, progress.version)


async def resume_together(desk: Desk, job: Job) -> int:
    """Bring both back to their newest common checkpoint; its version. Raises NothingToResume.

    What was made since is undone: versions and checkpoints here, samples in the service, their bytes in the storage.
    """
    saved = {one.name for one in await desk.client.checkpoints()}
    version = next((one for one in versions.versions(job.kept) if versions.name(one) in saved), None)
    if version is None:
        raise NothingToResume(f"{job.folder} has no checkpoint to resume from: leave out --resume to begin anew")
    restored = await desk.client.restore_checkpoint(versions.name(version), revived="unproduced")
    if restored.burnt:
        first, last = restored.burnt
        desk.storage.delete([cell_name(index, name) for index in range(first, last + 1) for name in FIELDS])
    for folder in (job.versions, job.kept):
        versions.drop_after(folder, version)
    versions.copy(job.kept, job.versions, version)
    for name in saved:
        if name > versions.name(version):
            await desk.client.delete_checkpoint(name)
    return version
