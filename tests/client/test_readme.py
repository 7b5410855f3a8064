"""The examples of client/README.md, run as they stand against the real service."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "client" / "README.md"


def printed(example: str, server_url: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    exec(example.replace("http://127.0.0.1:8700", server_url), {})
    return capsys.readouterr().out.splitlines()


def test_the_examples_run(server_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    calls, loop = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    first, second, cleared = printed(calls, server_url, capsys)
    assert (first, second) == ("['q1_0'] (812,) {'seq_len': 812}", "['q1_1'] (5310,) {'seq_len': 5310}")
    assert re.fullmatch(r"sample-cleared \(\d+, \d+\)", cleared)
    assert printed(loop, server_url, capsys) == ["['q2_0', 'q2_1'] [1, 1]", "['q2_2'] [1]", "2"]
