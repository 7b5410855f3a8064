"""Names of partitions and tasks go to the service and come back; what cannot is refused."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchmeta.transferqueue.errors import BadSetting
from batchmeta.transferqueue.names import LONGEST, check_fields, name_of, theirs_of
from core.names import check_name

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


@given(TEXTS)
def test_a_name_comes_back(theirs: str) -> None:
    name = name_of(theirs)
    assert theirs_of(name) == theirs
    assert not re.search(r"[/\\\x00-\x1f\x7f-\x9f]", name)
    assert name not in (".", "..")


@given(TEXTS, TEXTS)
def test_two_names_stay_two(one: str, two: str) -> None:
    assert (name_of(one) == name_of(two)) == (one == two)


def test_usual_names_stay_as_they_are() -> None:
    for name in ("train", "train@step_0", "val 1", "数据", "a~b", "-", "a.b"):
        assert name_of(name) == name
    assert name_of("train/step_0") == "train%2Fstep_0"
    assert name_of("100%") == "100%25"
    assert (name_of("."), name_of("..")) == ("%2E", "%2E%2E")


def test_the_service_takes_what_comes_out() -> None:
    for theirs in ("a/b", "\\", "\x00", "..", "%", "é\x9f", "x" * LONGEST):
        check_name(name_of(theirs), "partition_id")


@pytest.mark.parametrize("theirs", ["", "x" * (LONGEST + 1), "/" * LONGEST, 7, None])
def test_what_no_name_can_be_made_of_is_refused(theirs: str) -> None:
    with pytest.raises(BadSetting):
        name_of(theirs)


def test_fields_that_the_service_would_refuse() -> None:
    check_fields(["input_ids", "a.b", "数据"])
    for name in ("a,b", "", "x" * (LONGEST + 1), "tab\t", ("nested", "key")):
        with pytest.raises(BadSetting, match="field"):
            check_fields(["fine", name])  # type: ignore[list-item]
