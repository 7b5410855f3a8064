"""The wire contract, written once: the server decodes and documents with it, the client encodes and types with it."""

from .problems import PROBLEMS, ProblemType
from .types import DTYPES, MAX_RANK, MAX_ROWS

__all__ = ["DTYPES", "MAX_RANK", "MAX_ROWS", "PROBLEMS", "ProblemType"]
