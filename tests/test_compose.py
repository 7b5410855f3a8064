"""What docker-compose.yml and the Dockerfile promise, read from the files: no Docker is needed."""

import json
import re
from typing import Any

import pytest
import yaml

from .conftest import ROOT

Service = dict[str, Any]


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return loaded


@pytest.fixture(scope="module")
def service(compose: dict[str, Any]) -> Service:
    found: Service = compose["services"]["batchmeta"]
    return found


@pytest.fixture(scope="module")
def dockerfile() -> str:
    return (ROOT / "Dockerfile").read_text().replace("\\\n", "")


def _command(dockerfile: str) -> list[str]:
    [text] = re.findall(r"^CMD (.+)$", dockerfile, re.MULTILINE)
    command: list[str] = json.loads(text)  # only the exec form is JSON: a shell in between would keep SIGTERM to itself
    return command


def test_every_port_is_published_on_loopback_only(compose: dict[str, Any], service: Service) -> None:
    published = [port for each in compose["services"].values() for port in each.get("ports", [])]
    assert published == service["ports"] == ["127.0.0.1:8700:8700"]
    assert not any("network_mode" in each for each in compose["services"].values())


def test_the_service_binds_beyond_loopback_and_says_so(dockerfile: str, service: Service) -> None:
    assert "command" not in service
    command = _command(dockerfile)
    assert command[:3] == ["python", "-m", "app"]
    assert command[command.index("--host") + 1] == "0.0.0.0"
    assert "--allow-unauthenticated" in command


def test_the_journal_lies_in_a_named_volume(dockerfile: str, compose: dict[str, Any], service: Service) -> None:
    [volume] = service["volumes"]
    name, folder = volume.split(":")
    assert name in compose["volumes"]
    command = _command(dockerfile)
    assert command[command.index("--journal") + 1] == f"file://{folder}/journal"
    assert f"VOLUME {folder}\n" in dockerfile


def test_it_does_not_run_as_root(dockerfile: str) -> None:
    final_stage = dockerfile[dockerfile.rindex("FROM ") :]
    [user] = re.findall(r"^USER (\d+):\d+$", final_stage, re.MULTILINE)
    assert int(user) > 0


def test_health_means_ready(dockerfile: str, service: Service) -> None:
    [check] = re.findall(r"^HEALTHCHECK .*?CMD (\[.+\])$", dockerfile, re.MULTILINE)
    assert "/readyz" in json.loads(check)[2]
    assert "test" not in service["healthcheck"]  # the image's
    assert not service["healthcheck"].get("disable", False)


def test_the_health_command_is_valid_python(dockerfile: str) -> None:
    [check] = re.findall(r"^HEALTHCHECK .*?CMD (\[.+\])$", dockerfile, re.MULTILINE)
    program, flag, source = json.loads(check)
    assert (program, flag) == ("python", "-c")
    compile(source, "HEALTHCHECK", "exec")


def test_the_demo_runs_only_when_asked_for(compose: dict[str, Any]) -> None:
    demo = compose["services"]["demo"]
    assert demo["profiles"] == ["demo"]
    assert demo["restart"] == "no"
    assert demo["depends_on"] == {"batchmeta": {"condition": "service_healthy"}}
    assert "http://batchmeta:8700" in demo["command"]


def test_the_service_goes_by_the_name_the_demo_uses(service: Service) -> None:
    assert "batchmeta" in service["environment"]["BATCHMETA_ALLOWED_HOSTS"].split(",")


def test_a_stop_has_time_to_finish(service: Service) -> None:
    assert int(service["stop_grace_period"].removesuffix("s")) > 5
