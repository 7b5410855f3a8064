"""Writes the generated pages of docs/reference, or with --check says which committed ones are out of date."""

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from app.reference import pages


def main(arguments: list[str]) -> int:
    """0, or 1 where --check finds a page that differs."""
    folder = ROOT / "docs" / "reference"
    stale = [
        name for name, text in pages().items() if not (folder / name).exists() or (folder / name).read_bytes() != text
    ]
    if arguments == ["--check"]:
        sys.stdout.write("".join(f"docs/reference/{name}: run scripts/reference.py\n" for name in stale))
        return 1 if stale else 0
    for name, text in pages().items():
        (folder / name).write_bytes(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
