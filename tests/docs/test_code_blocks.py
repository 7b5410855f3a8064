"""The code blocks of the pages below run as they stand: shell blocks with curl, Python blocks with the client.

A comment `# → text` after a command must be found in what that command printed. Each page gets a server of its own.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ..conftest import ROOT, ServerProcess

URL = "http://127.0.0.1:8700"
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```", re.DOTALL | re.MULTILINE)
CONTRACT = "docs/reference/contract.md"  # it shows requests alone
PAGES = [
    CONTRACT,
    "README.md",
    "docs/quickstart.md",
    "docs/how-to/choose-rows.md",
    "docs/how-to/clear.md",
    "docs/how-to/checkpoints.md",
    "docs/how-to/ranks.md",
    "docs/how-to/when-production-fails.md",
]


def steps(script: str) -> list[tuple[str, list[str]]]:
    """Commands, each with the texts its output must hold."""
    out: list[tuple[str, list[str]]] = []
    command: list[str] = []
    for line in script.splitlines():
        if line.startswith("# → "):
            if command:
                out.append(("\n".join(command), []))
                command = []
            out[-1][1].append(line.removeprefix("# → "))
        else:
            command.append(line)
    if "".join(command).strip():
        out.append(("\n".join(command), []))
    return out


def run_shell(script: str) -> None:
    set_up = ""
    for command, expected in steps(script):
        done = subprocess.run(["bash", "-ec", set_up + command], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, (command, done.stderr)
        for text in expected:
            assert text in done.stdout, (command, text, done.stdout)
        set_up += "".join(f"{line}\n" for line in command.splitlines() if re.match(r"[A-Z]+=", line))


def run_python(script: str, folder: Path) -> None:
    file = folder / "block.py"
    file.write_text(script)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_the_page_runs(page: str, tmp_path: Path) -> None:
    server = ServerProcess("--journal", f"file://{tmp_path}/journal")
    try:
        blocks = BLOCK.findall((ROOT / page).read_text())
        assert {kind for kind, _ in blocks} == ({"sh"} if page == CONTRACT else {"sh", "python"})
        for kind, text in blocks:
            script = text.replace(URL, server.url)
            run_shell(script) if kind == "sh" else run_python(script, tmp_path)
    finally:
        assert server.stop() == 0


def test_a_block_that_prints_something_else_is_noticed() -> None:
    with pytest.raises(AssertionError, match="three"):
        run_shell("echo one two\n# → three\n")
