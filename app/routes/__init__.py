"""The routes, one file per resource, in the order they stand in the docs."""

from ..contract import Routes
from . import batch_meta, checkpoints, claims, clears, partitions, production, samples, server, tasks

ALL: tuple[Routes, ...] = (
    server.routes,
    partitions.routes,
    samples.routes,
    production.routes,
    batch_meta.routes,
    tasks.routes,
    claims.routes,
    clears.routes,
    checkpoints.routes,
)
