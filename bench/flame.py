"""A flame graph as one SVG file: a box is as wide as the share of samples in which its function ran, coloured by layer.

The bottom row has the threads; above a box stands what it called. A box says its share when the pointer rests on it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape

from .layers import IDLE, LAYERS, LOCKED, Stack

WIDTH, ROW, LETTER, LEAST = 1600.0, 17, 6.6, 0.6
HEAD = 58
COLOURS = ("#8fb8de", "#b8a9d9", "#e8c468", "#e58f7b", "#9ccc9c", "#5fa777", "#6fc2c2", "#c99b6d", "#d9a0c0", "#cfcfcf")
NEARLY_ALL, SEVERAL = 0.8, "several layers"
COLOUR = dict(zip(LAYERS, COLOURS, strict=True)) | {SEVERAL: "#eeeeee", LOCKED: "#f3d5cd"}


@dataclass(slots=True)
class Box:
    """A function at one place in the graph, with its samples by layer."""

    samples: int = 0
    layers: dict[str, int] = field(default_factory=dict)
    above: "dict[str, Box]" = field(default_factory=dict)

    def add(self, stack: Stack) -> "Box":
        """Count a stack."""
        self.samples += stack.samples
        self.layers[stack.layer] = self.layers.get(stack.layer, 0) + stack.samples
        return self

    @property
    def layer(self) -> str:
        """The one with nearly all of its samples, or several."""
        most = max(self.layers, key=self.layers.__getitem__)
        return most if self.layers[most] >= NEARLY_ALL * self.samples else SEVERAL


Row = tuple[int, float, float, str, Box]


def svg(found: Sequence[Stack], title: str) -> str:
    """The graph of all stacks of threads that have work."""
    root = _tree(found)
    rows = list(_rows(root, 0, 0.0, WIDTH / max(1, root.samples)))
    height = HEAD + ROW * (2 + max((depth for depth, *_ in rows), default=0))
    boxes = "".join(_box(height, row, root.samples) for row in rows)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {height}" width="{WIDTH:g}" height="{height}"'
        ' font-family="monospace" font-size="11"><rect width="100%" height="100%" fill="white"/>'
        f'<text x="8" y="20" font-size="15">{escape(title)}</text>{_legend()}{boxes}</svg>\n'
    )


def _tree(found: Sequence[Stack]) -> Box:
    root = Box()
    for stack in found:
        if stack.layer == IDLE:
            continue
        at = root.add(stack)
        for frame in stack.frames:
            at = at.above.setdefault(frame, Box()).add(stack)
    return root


def _rows(box: Box, depth: int, left: float, scale: float) -> Iterator[Row]:
    """(row, left edge, width, frame, box) of all that is wide enough to be seen."""
    for frame, each in sorted(box.above.items()):
        width = each.samples * scale
        if width >= LEAST:
            yield depth, left, width, frame, each
            yield from _rows(each, depth + 1, left, scale)
        left += width


def _box(height: float, row: Row, total: int) -> str:
    depth, left, width, frame, box = row
    top = height - ROW * (depth + 1)
    letters = int((width - 6) / LETTER)
    text = escape(frame if len(frame) <= letters else frame[: max(0, letters - 1)] + "…") if letters > 3 else ""
    tip = escape(f"{frame}: {100 * box.samples / total:.1f} %, {box.layer}")
    return (
        f'<g><title>{tip}</title><rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{ROW - 1}"'
        f' fill="{COLOUR[box.layer]}" stroke="white" stroke-width="0.4"/>'
        f'<text x="{left + 3:.1f}" y="{top + 12}">{text}</text></g>'
    )


def _legend() -> str:
    return "".join(
        f'<rect x="{8 + 105 * at}" y="32" width="12" height="12" fill="{COLOUR[layer]}"/>'
        f'<text x="{25 + 105 * at}" y="42">{layer}</text>'
        for at, layer in enumerate(COLOUR)
    )
