"""Whatever a comment, a docstring or a page names is there: files, modules, anchors, decisions, settings."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..conftest import ROOT
from .pointers import KINDS, Pointer, Tree, anchors, pointers, resolves

EXCEPTIONS = {
    "msgspec.json": "a module of msgspec, and no file",
    "NAME.json": "NAME stands for the name of a checkpoint",
    "nearest.py": "a file that the reader of the page writes",
    "--help": "argparse adds it to each program",
    **dict.fromkeys(("--json", "--get", "--data-urlencode"), "curl's"),
    **dict.fromkeys(("--rm", "--detach", "--build", "--volumes"), "docker's"),
    "--extra-index-url": "pip's",
}
PLANTED = {
    "file": ("core/a.py", "# as b.py does\n"),
    "folder": ("core/a.py", '"""See core/samplers."""\n'),
    "module": ("docs/page.md", "`core.a.missing` and `core.a`\n"),
    "class": ("docs/page.md", "`core/a.py` `Missing`\n"),
    "anchor": ("core/a.py", '"""(contract#missing)"""\n'),
    "link": ("docs/page.md", "[one](reference/contract.md#there) [other](reference/contract.md#missing)\n"),
    "decision": ("core/a.py", "X = 1  # decision 0009\n"),
    "section": ("core/a.py", '"""Section 3; RFC 9110, section 3 and section 4."""\n'),
    "flag": ("docs/page.md", "`--port` and `--prot`\n"),
    "variable": ("docs/page.md", "`BATCHMETA_PORT` and `BATCHMETA_PROT`\n"),
}


@pytest.fixture(scope="module")
def found() -> list[Pointer]:
    """All pointers of this repository that resolve to nothing."""
    tree = Tree(ROOT)
    seen = list(pointers(tree))
    assert {pointer.kind for pointer in seen} >= KINDS.keys() - {"section"}
    return [pointer for pointer in seen if not resolves(tree, pointer)]


def test_all_that_is_named_is_there(found: list[Pointer]) -> None:
    assert [pointer for pointer in found if pointer.text not in EXCEPTIONS] == []


def test_no_exception_is_out_of_date(found: list[Pointer]) -> None:
    assert EXCEPTIONS.keys() == {pointer.text for pointer in found} & EXCEPTIONS.keys()


def test_no_page_has_an_explicit_anchor_twice() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        text = page.read_text()
        found = anchors(text)
        assert [one for one in set(found) if found.count(one) > 1 and f'<a id="{one}">' in text] == [], page


def planted(root: Path, file: str, text: str) -> Iterator[str]:
    """What resolves to nothing in a small tree with this file."""
    small = {
        "core/__init__.py": "",
        "core/a.py": "class A: ...\n",
        "docs/reference/contract.md": "## There\n",
        file: text,
    }
    for name, content in small.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    tree = Tree(root)
    return (pointer.kind for pointer in pointers(tree) if not resolves(tree, pointer))


@pytest.mark.parametrize("kind", KINDS)
def test_a_pointer_to_nothing_is_noticed(kind: str, tmp_path: Path) -> None:
    assert list(planted(tmp_path, *PLANTED[kind])) == [kind]


def test_headings_have_the_anchors_that_github_gives_them() -> None:
    page = '# One, `two` & three!\n```\n# no heading\n```\n## Four <a id="x"></a>\n### É_ß-1\n'
    assert anchors(page) == ["x", "one-two--three", "four", "é_ß-1"]
