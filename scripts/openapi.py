"""Writes docs/reference/openapi.json from the app, or with --check says whether the committed one is up to date."""

import sys
from pathlib import Path

import orjson

sys.path.insert(0, str(Path(__file__).parent.parent))

from app.application import openapi

PATH = Path(__file__).parent.parent / "docs" / "reference" / "openapi.json"


def main(arguments: list[str]) -> int:
    """0, or 1 where the committed document differs."""
    text = orjson.dumps(openapi(), option=orjson.OPT_INDENT_2) + b"\n"
    if arguments == ["--check"]:
        fresh = PATH.exists() and PATH.read_bytes() == text
        sys.stdout.write("openapi.json is up to date\n" if fresh else "run .venv/bin/python scripts/openapi.py\n")
        return 0 if fresh else 1
    PATH.write_bytes(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
