"""Settings come from arguments, else from the environment; what cannot be used is refused with its name."""

import pytest

from batchmeta.transferqueue import errors, install
from batchmeta.transferqueue.settings import settings_from

URL = "http://127.0.0.1:8700"


def test_arguments_go_before_the_environment() -> None:
    environment = {"BATCHMETA_URL": "http://other:1/", "BATCHMETA_JOB": "other"}
    assert settings_from(environment).url == "http://other:1"
    assert settings_from(environment).job == "other"
    found = settings_from(environment, URL, job="", timeout_s=2.0, patience_s=3.0)
    assert (found.url, found.job, found.timeout_s, found.patience_s) == (URL, "", 2.0, 3.0)


def test_what_transferqueue_reads_from_the_environment_is_read_too() -> None:
    plain = settings_from({}, URL)
    assert (plain.expected_samples, plain.wait_s, plain.any_version) == (None, 1.0, False)
    assert settings_from({"TQ_PRE_ALLOC_SAMPLE_NUM": "1"}, URL).expected_samples is None
    given = {
        "TQ_PRE_ALLOC_SAMPLE_NUM": "512",
        "TQ_CONTROLLER_GET_METADATA_TIMEOUT": "60",
        "BATCHMETA_ANY_TRANSFERQUEUE": "1",
    }
    found = settings_from(given, URL)
    assert (found.expected_samples, found.wait_s, found.any_version) == (512, 60.0, True)


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "BATCHMETA_URL"),
        ({"BATCHMETA_URL": "127.0.0.1:8700"}, "http://127.0.0.1:8700"),
        ({"BATCHMETA_URL": "ftp://host"}, "http://127.0.0.1:8700"),
        ({"BATCHMETA_URL": "http://user:secret@host"}, "no user or password"),
        ({"BATCHMETA_URL": URL, "BATCHMETA_JOB": "a~b"}, "job"),
        ({"BATCHMETA_URL": URL, "TQ_PRE_ALLOC_SAMPLE_NUM": "many"}, "TQ_PRE_ALLOC_SAMPLE_NUM"),
    ],
)
def test_what_cannot_be_used_is_named(environment: dict[str, str], said: str) -> None:
    with pytest.raises(errors.BadSetting, match=said) as caught:
        settings_from(environment)
    assert "secret" not in str(caught.value)


def test_install_refuses_a_bad_url_before_it_looks_for_transferqueue() -> None:
    with pytest.raises(errors.BadSetting):
        install("no url")
