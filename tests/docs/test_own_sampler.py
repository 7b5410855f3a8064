"""The page about own samplers: its sampler is loaded as the page says, and its calls answer what the page says."""

import os
from pathlib import Path

from ..conftest import ROOT, ServerProcess
from .test_code_blocks import BLOCK, URL, run_shell


def test_the_sampler_of_the_page_works(tmp_path: Path) -> None:
    (_, module), (_, calls) = BLOCK.findall((ROOT / "docs" / "how-to" / "own-sampler.md").read_text())
    (tmp_path / "nearest.py").write_text(module)
    path = os.pathsep.join([str(ROOT), str(tmp_path)])
    server = ServerProcess("--journal", "memory:", "--sampler", "nearest=nearest:Nearest", env={"PYTHONPATH": path})
    try:
        run_shell(calls.replace(URL, server.url))
    finally:
        assert server.stop() == 0
