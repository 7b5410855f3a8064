"""Client of the batchmeta metadata service: `AsyncClient`, `Client`, and the values they give back."""

from . import errors
from .aio import AsyncClient
from .aio.lease import AsyncLease
from .aio.loop import AsyncClaims, StrandedWarning
from .batch import BatchMeta
from .blocking_generated import Client
from .columns import Array, Column, Const
from .errors import *  # noqa: F403 - one name per code of the contract; errors.__all__ is checked against the table
from .leases import Claims, Lease
from .retries import Retries
from .schema import FieldSchema
from .values import (
    BackendMeta,
    Claim,
    Clear,
    ClearField,
    Consumption,
    KeyChanges,
    KeyLine,
    PatchedBackendMeta,
    Produced,
    ProductionStatus,
    Tagged,
)

__all__ = [
    "Array",
    "AsyncClaims",
    "AsyncClient",
    "AsyncLease",
    "BackendMeta",
    "BatchMeta",
    "Claim",
    "Claims",
    "Clear",
    "ClearField",
    "Client",
    "Column",
    "Const",
    "Consumption",
    "FieldSchema",
    "KeyChanges",
    "KeyLine",
    "Lease",
    "PatchedBackendMeta",
    "Produced",
    "ProductionStatus",
    "Retries",
    "StrandedWarning",
    "Tagged",
]
__all__ += errors.__all__
