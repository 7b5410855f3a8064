"""The table of all routes, in the order of the docs. Each resource has a file of routes and one of renderers."""

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
