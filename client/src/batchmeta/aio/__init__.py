"""The client for asyncio. Each file beside this one holds the calls about one noun."""

from .client import AsyncClient

__all__ = ["AsyncClient"]
