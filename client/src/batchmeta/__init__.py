"""Client of the batchmeta metadata service: `AsyncClient`, `Client`, and the values they give back."""

from . import errors
from .aio import AsyncClient
from .batch import BatchMeta
from .client import Client
from .columns import Array, Column, Const
from .errors import *  # noqa: F403 - one name per code of the contract; errors.__all__ is checked against the table
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
    "AsyncClient",
    "BackendMeta",
    "BatchMeta",
    "Claim",
    "Clear",
    "ClearField",
    "Client",
    "Column",
    "Const",
    "Consumption",
    "FieldSchema",
    "KeyChanges",
    "KeyLine",
    "PatchedBackendMeta",
    "Produced",
    "ProductionStatus",
    "Retries",
    "Tagged",
]
__all__ += errors.__all__
