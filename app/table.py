"""Finds the operation that a request names, by the parts of its path: no pattern is tried.

Starlette's router stays behind it for all else: pages, assets, and the answer to a path or a method that is not there.
"""

from collections.abc import Iterable
from typing import Any

from .contract import Endpoint, Operation
from .edge import Edge

Found = tuple[Endpoint, dict[str, str]]
"""An operation's endpoint, and the names in the path."""

_Node = dict[str | None, Any]
_METHODS = "/"  # no part of a path is this: it would be split there


class RouteTable:
    """All operations, and what their calls share. A node has what may follow it by part; None: any name."""

    def __init__(self, operations: Iterable[Operation], edge: Edge) -> None:
        self.edge = edge
        self._root: _Node = {}
        for operation in operations:
            self._add(operation)

    def _add(self, operation: Operation) -> None:
        node, names = self._root, []
        for part in operation.path.split("/"):
            is_name = part.startswith("{")
            if is_name:
                names.append(part[1:-1])
            node = node.setdefault(None if is_name else part, {})
        node.setdefault(_METHODS, {})[operation.method] = operation.endpoint, tuple(names)

    def find(self, method: str, path: str) -> Found | None:
        """The operation of this path, a HEAD's as its GET's; None where there is none."""
        node, values = self._root, []
        for part in path.split("/"):
            below = node.get(part)
            if below is None:
                below = node.get(None) if part else None
                if below is None:
                    return None
                values.append(part)
            node = below
        found = node.get(_METHODS, {}).get("GET" if method == "HEAD" else method)
        return None if found is None else (found[0], dict(zip(found[1], values, strict=True)))
