"""Every setting by flag and by environment, flags first; a wrong one is one line that says what is accepted."""

from getpass import getuser
from pathlib import Path
from typing import Any

import pytest

from app.settings import SETTINGS, SettingsRefused, load
from app.version import VERSION

# name, text, value
GOOD: list[tuple[str, str, Any]] = [
    ("host", "::1", "::1"),
    ("host", "[::1]", "::1"),
    ("host", "LocalHost", "localhost"),
    ("port", "0", 0),
    ("port", "65535", 65_535),
    ("journal", "memory:", "memory:"),
    ("checkpoints", "a/b", "a/b"),
    ("checkpoints", "~/a b", f"{Path.home()}/a b"),
    ("checkpoints", "./~/a", "./~/a"),
    ("restore", "x.checkpoint", "x.checkpoint"),
    ("restore", f"~{getuser()}/x", f"{Path(f'~{getuser()}').expanduser()}/x"),
    ("min_free_bytes", "1", 1),
    ("device", "npu:3", "npu:3"),
    ("device", "auto", "auto"),
    ("device", "CPU", "cpu"),
    ("device", "Cuda:1", "cuda:1"),
    ("max_body_bytes", "1", 1),
    ("max_checkpoint_bytes", "9", 9),
    ("max_cell_bytes", "123", 123),
    ("kept_bytes", "1048576", 1_048_576),
    ("max_waiting_per_client", "7", 7),
    ("allowed_hosts", "One.example, two", ("one.example", "two")),
    ("allow_unauthenticated", "yes", True),
    ("allow_unauthenticated", "0", False),
    ("realtime", "false", False),
    ("realtime", "OFF", False),
    ("allow_unauthenticated", "on", True),
    ("sampler", "mine=pack.mod:Kind, b_2=m:K", (("mine", "pack.mod", "Kind"), ("b_2", "m", "K"))),
    ("log_level", "debug", "debug"),
    ("log_level", "INFO", "info"),
]
# name, text, word of the line
BAD = [
    ("port", "x", "0 to 65535"),
    ("port", "65536", "0 to 65535"),
    ("port", "-1", "0 to 65535"),
    ("port", "", "0 to 65535"),
    ("port", "8_0", "0 to 65535"),
    ("checkpoints", "~no-such-user/x", "~no-such-user"),
    ("restore", "~no-such-user/x", "~no-such-user"),
    ("min_free_bytes", "1_000", "whole number"),
    ("device", "gpu", "npu"),
    ("device", "cuda:", "cuda:0"),
    ("device", "cpu:0", "cpu"),
    ("max_body_bytes", "0", "1 or more"),
    ("max_checkpoint_bytes", "0", "1 or more"),
    ("max_body_bytes", "1.5", "whole number"),
    ("max_cell_bytes", "64KiB", "whole number"),
    ("max_waiting_per_client", "many", "whole number"),
    ("allow_unauthenticated", "perhaps", "true or false"),
    ("realtime", "maybe", "true or false"),
    ("sampler", "mine", "name=package.module:Class"),
    ("sampler", "Mine=m:K", "name=package.module:Class"),
    ("sampler", "mine=m", "name=package.module:Class"),
    ("sampler", "mine=os.system('x'):K", "name=package.module:Class"),
    ("sampler", "a=m:K,a=m:L", "twice"),
    ("log_level", "LOUD", "warning"),
]
DEFAULTS: dict[str, Any] = {
    "host": "127.0.0.1", "port": 8700, "journal": "file:data/journal", "checkpoints": "", "restore": "",
    "min_free_bytes": 2**28, "device": "cpu", "max_body_bytes": 2**26, "max_checkpoint_bytes": 2**34,
    "max_cell_bytes": 2**16, "kept_bytes": 2**25, "max_waiting_per_client": 10_000,
    "allowed_hosts": (), "allow_unauthenticated": False,
    "realtime": True,
    "sampler": (), "log_level": "info",
}  # fmt: skip


def variable(name: str) -> str:
    return f"BATCHMETA_{name.upper()}"


def flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def test_the_defaults() -> None:
    settings = load([], {"PATH": "/bin", "OTHER_PORT": "1"})
    assert {name: getattr(settings, name) for name in DEFAULTS} == DEFAULTS
    assert {setting.name for setting in SETTINGS} == set(DEFAULTS) == {name for name, _, _ in GOOD}


@pytest.mark.parametrize(("name", "text", "value"), GOOD)
def test_a_setting_is_read_from_its_flag_and_from_its_variable(name: str, text: str, value: Any) -> None:
    assert getattr(load([f"{flag(name)}={text}"], {}), name) == value
    assert getattr(load([flag(name), text], {}), name) == value
    assert getattr(load([], {variable(name): text}), name) == value


def test_a_sampler_may_be_named_again_and_again() -> None:
    found = load(["--sampler", "a=m:K", "--sampler=b=m:L,c=n:M"], {"BATCHMETA_SAMPLER": "d=m:K"}).sampler
    assert found == (("a", "m", "K"), ("b", "m", "L"), ("c", "n", "M"))


@pytest.mark.parametrize(("name", "text", "word"), BAD)
def test_a_malformed_one_is_one_line_with_its_name_and_what_is_accepted(name: str, text: str, word: str) -> None:
    for arguments, environment, said in (
        ([f"{flag(name)}={text}"], {}, f"{flag(name)}={text!r}"),
        ([], {variable(name): text}, f"{variable(name)}={text!r}"),
    ):
        with pytest.raises(SettingsRefused) as refusal:
            load(arguments, environment)
        line = str(refusal.value)
        assert said in line
        assert word in line
        assert "\n" not in line


def test_a_flag_wins_over_the_environment_even_over_a_malformed_one() -> None:
    assert load(["--port", "1"], {"BATCHMETA_PORT": "2"}).port == 1
    assert load(["--port", "1"], {"BATCHMETA_PORT": "x"}).port == 1


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        load(["--version"], {})
    assert end.value.code == 0
    assert capsys.readouterr().out == f"batchmeta {VERSION}\n"


def test_a_switch_needs_no_value() -> None:
    assert load(["--allow-unauthenticated"], {}).allow_unauthenticated
    assert not load(["--allow-unauthenticated=false"], {"BATCHMETA_ALLOW_UNAUTHENTICATED": "1"}).allow_unauthenticated


@pytest.mark.parametrize("arguments", [["--prot", "1"], ["--por", "1"], ["--port"], ["serve"]])
def test_an_unknown_or_unfinished_flag_is_one_line(arguments: list[str]) -> None:
    with pytest.raises(SettingsRefused) as refusal:
        load(arguments, {})
    assert arguments[0] in str(refusal.value)
    assert "--help" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_an_unknown_variable_of_ours_is_one_line_that_names_those_there_are() -> None:
    with pytest.raises(SettingsRefused, match=r"BATCHMETA_PROT is no setting.*BATCHMETA_PORT"):
        load([], {"BATCHMETA_PROT": "1"})


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", ""])
def test_a_bind_beyond_loopback_must_be_meant(host: str) -> None:
    with pytest.raises(SettingsRefused, match="--allow-unauthenticated"):
        load([f"--host={host}"], {})
    assert load([f"--host={host}", "--allow-unauthenticated"], {}).host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_loopback_needs_no_more(host: str) -> None:
    assert load(["--host", host], {}).host == host


def test_what_the_client_reads_may_be_set_where_a_service_starts() -> None:
    others = ("BATCHMETA_URL", "BATCHMETA_JOB", "BATCHMETA_ANY_TRANSFERQUEUE", "BATCHMETA_BENCH_CACHE")
    assert load([], dict.fromkeys(others, "x")) == load([], {})
