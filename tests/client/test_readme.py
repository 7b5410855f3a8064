"""The example of client/README.md, run as it stands against the real service."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "client" / "README.md"


def test_the_example_runs(server_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    exec(example.replace("http://127.0.0.1:8700", server_url), {})
    first, second, cleared = capsys.readouterr().out.splitlines()
    assert (first, second) == ("['q1_0'] (812,) {'seq_len': 812}", "['q1_1'] (5310,) {'seq_len': 5310}")
    assert re.fullmatch(r"sample-cleared \(\d+, \d+\)", cleared)
