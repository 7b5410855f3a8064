"""msgspec's words are taken apart into place and text, and put together again as msgspec would say them."""

from typing import Annotated, Literal

import msgspec
import pytest

from core.decode_errors import DecodeFault, fault_of, unknown


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    kind: Literal["a", "b"] = "a"


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    rows: list[int] = []
    inner: Inner | None = None
    by_name: dict[Annotated[str, msgspec.Meta(pattern="^a")], Inner] = {}


def failing(text: str) -> msgspec.ValidationError:
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.json.decode(text, type=Outer)
    return raised.value


@pytest.mark.parametrize(
    ("text", "place", "told", "stranger"),
    [
        ("[]", "", "expected `object`, got `array`", None),
        ('{"rows": [1, "2"]}', ".rows[1]", "expected `int`, got `str`", None),
        ('{"inner": {"kind": "c"}}', ".inner.kind", "invalid enum value 'c': use one of a, b", None),
        ('{"by_name": {"b": {}}}', ".by_name", "a name here: expected `str` matching regex '^a'", None),
        ('{"by_name": {"a": 1}}', ".by_name[...]", "expected `object`, got `int`", None),
        ('{"zzz": 1}', "", "object contains unknown field `zzz`", "zzz"),
        ('{"inner": {"zzz": 1}}', ".inner", "object contains unknown field `zzz`", "zzz"),
        ('{"z - at `$.q`": 1}', "", "object contains unknown field `z - at `$.q``", "z - at `$.q`"),
        ('{"inner": {"z - at `$.q`": 1}}', ".inner", "object contains unknown field `z - at `$.q``", "z - at `$.q`"),
        ('{"a\\nb": 1}', "", "object contains unknown field `a\nb`", "a\nb"),
    ],
)
def test_a_mistake_has_a_place_and_a_text(text: str, place: str, told: str, stranger: str | None) -> None:
    error = failing(text)
    fault = fault_of(error)
    assert (fault.place, fault.told(Outer), fault.unknown) == (place, told, stranger)
    assert str(fault) == str(error)
    assert fault.is_unnamed == ("[...]" in place)


@pytest.mark.parametrize("name", ["a", "a`b", "x - at `$.y`"])
def test_a_place_is_put_before_whatever_it_is_named(name: str) -> None:
    fault = fault_of(fault_of(failing('{"rows": [1, "2"]}')).below(f".by_name.{name}"))
    assert fault.place == f".by_name.{name}.rows[1]"
    assert str(fault) == f"Expected `int`, got `str` - at `$.by_name.{name}.rows[1]`"


def test_a_name_of_a_member_stays_one_where_a_place_is_put_before() -> None:
    fault = fault_of(failing('{"by_name": {"b": {}}}')).below(".x")
    assert (fault.place, fault.is_key) == (".x.by_name", True)
    assert str(fault) == "Expected `str` matching regex '^a' - at `key` in `$.x.by_name`"


def test_an_unknown_member_is_told_as_msgspec_tells_it() -> None:
    assert isinstance(unknown("zzz"), DecodeFault)
    assert str(unknown("zzz")) == str(failing('{"zzz": 1}'))
