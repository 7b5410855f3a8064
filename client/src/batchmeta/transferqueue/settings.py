"""The settings of the adapter: where the service is, which job this is, how long to wait.

A token never stands here: settings travel in TransferQueue's config to every worker.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from .errors import BadSetting

URL = "BATCHMETA_URL"
JOB = "BATCHMETA_JOB"
ANY_VERSION = "BATCHMETA_ANY_TRANSFERQUEUE"


@dataclass(frozen=True, slots=True)
class Settings:
    """`job`: prefix of the job's partitions, so that several jobs share one service; empty: none.

    `timeout_s`: seconds without progress after which a call is lost. `patience_s`: for so many seconds a lost call is
    sent again, a restart of the service included. `wait_s`: how long a fetch that does not poll waits for data.
    `expected_samples`: how many samples each new partition expects, or None. `any_version`: take any TransferQueue.
    """

    url: str
    job: str = ""
    timeout_s: float = 30.0
    patience_s: float = 60.0
    wait_s: float = 1.0
    expected_samples: int | None = None
    any_version: bool = False

    def __post_init__(self) -> None:
        _check_url(self.url)
        if "~" in self.job:
            raise BadSetting(f"job: {self.job!r} must not hold ~, which ends the name of the job in partition ids")


def settings_from(
    environment: Mapping[str, str],
    url: str | None = None,
    job: str | None = None,
    timeout_s: float = 30.0,
    patience_s: float = 60.0,
) -> Settings:
    """The settings given, the rest from the environment. BadSetting where no URL is given."""
    found = environment.get(URL, "") if url is None else url
    if not found:
        raise BadSetting(f"give the service's URL, such as http://127.0.0.1:8700, to install() or in {URL}")
    expected = _whole(environment, "TQ_PRE_ALLOC_SAMPLE_NUM", 1)
    return Settings(
        url=found.rstrip("/"),
        job=environment.get(JOB, "") if job is None else job,
        timeout_s=timeout_s,
        patience_s=patience_s,
        wait_s=float(_whole(environment, "TQ_CONTROLLER_GET_METADATA_TIMEOUT", 1)),
        expected_samples=expected if expected > 1 else None,
        any_version=environment.get(ANY_VERSION, "") == "1",
    )


def is_wanted() -> bool:
    """The environment names a service."""
    return bool(os.environ.get(URL))


def _check_url(given: str) -> None:
    try:
        url = httpx.URL(given)
    except (httpx.InvalidURL, TypeError) as error:
        raise BadSetting(f"{URL}: {given!r} is no URL ({error})") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise BadSetting(f"{URL} must be like http://127.0.0.1:8700, not {given!r}")
    if url.userinfo:
        raise BadSetting(f"{URL} must hold no user or password: it travels to every worker")


def _whole(environment: Mapping[str, str], name: str, default: int) -> int:
    given = environment.get(name) or str(default)
    try:
        return int(given)
    except ValueError:
        raise BadSetting(f"{name} must be a whole number, not {given!r}") from None
