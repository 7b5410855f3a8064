"""Undocumented means broken: every route, setting, code, sampler and blocking reason is found in the docs."""

import re

import pytest

from app.reference import pages
from app.routes import ALL
from app.settings import SETTINGS
from batchmeta.wire import PROBLEMS
from core.samplers import SAMPLERS

from ..conftest import ROOT

REFERENCE = ROOT / "docs" / "reference"
PROSE = "\n".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("name", sorted(pages()))
def test_generated_page_is_up_to_date(name: str) -> None:
    assert (REFERENCE / name).read_bytes() == pages()[name], "run .venv/bin/python scripts/reference.py"


def test_every_name_is_found() -> None:
    names = [f"{op.method} {op.path}" for routes in ALL for op in routes.operations]
    names += [s.flag for s in SETTINGS] + [s.variable for s in SETTINGS]
    names += [f"`{code}`" for code in PROBLEMS] + [f"`{name}`" for name in SAMPLERS]
    assert [name for name in names if name not in PROSE] == []


def test_every_blocking_reason_is_explained() -> None:
    sources = [*(ROOT / "core").rglob("*.py"), *(ROOT / "core" / "samplers").glob("*.py")]
    code = "\n".join(path.read_text() for path in sources)
    reasons = set(re.findall(r'Blocking\("([a-z-]+)"', code)) | set(re.findall(r'\("(group-[a-z]+)"', code))
    assert len(reasons) >= 6
    assert [reason for reason in sorted(reasons) if f"`{reason}`" not in PROSE] == []
