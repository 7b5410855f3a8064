"""What a comment, a docstring or a page may point at, and whether it is there: files, modules, anchors, settings.

Each kind of pointer is a regular expression and a function that resolves what it found. A layout is not known here: the
folders are walked, so a file that moves takes its name with it and what still names the old place is found.
"""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from app.settings import SETTINGS

READ = {".py", ".md", ".yml", ".toml", ".sh", ""}
SKIPPED = {"__pycache__", "build", "dist", "data", "node_modules"}
PACKAGES = {"batchmeta": "client/src/batchmeta"}  # the others are folders of the root


class Pointer(NamedTuple):
    """`kind` is a name in KINDS; `text` is what was written."""

    file: str
    line: int
    kind: str
    text: str


@dataclass(frozen=True)
class Tree:
    """The files under `root`, but for those that are made and not written."""

    root: Path

    @cached_property
    def files(self) -> dict[str, Path]:
        """By path from the root, with slashes."""
        return {path.relative_to(self.root).as_posix(): path for path in self._walk(self.root)}

    def _walk(self, folder: Path) -> Iterator[Path]:
        for path in sorted(folder.iterdir()):
            is_hidden = path.name.startswith(".") and path.name not in (".ci", ".gitignore", ".dockerignore")
            if is_hidden or path.name in SKIPPED or path.name.endswith(".egg-info"):
                continue
            if path.is_dir():
                yield from self._walk(path)
            else:
                yield path

    @cached_property
    def top(self) -> str:
        """Names of folders of the root, as an expression."""
        return "|".join(sorted({name.split("/")[0] for name in self.files if "/" in name}))

    @cached_property
    def packages(self) -> str:
        """Names of the packages that prose may name with dots, as an expression."""
        return "|".join(
            [*PACKAGES, *(name.split("/")[0] for name in self.files if re.fullmatch(r"\w+/__init__.py", name))]
        )

    @cached_property
    def said(self) -> set[str]:
        """Flags and variables: those of the service's settings, and strings of the programs that are wholly one."""
        found = {name for setting in SETTINGS for name in (setting.flag, setting.variable)}
        for name in self.files:
            if name.endswith(".py") and not name.startswith("tests/"):
                found.update(re.findall(r'"(--[a-z][a-z-]+|BATCHMETA_[A-Z_]+)"', self.text(name)))
        return found

    def has(self, name: str) -> bool:
        """Whether this is a file or a folder, from the root."""
        return name in self.files or any(one.startswith(f"{name}/") for one in self.files)

    def text(self, name: str) -> str:
        """The whole text of a file."""
        return self.files[name].read_text()

    def prose(self) -> Iterator[tuple[str, int, str]]:
        """File, line and text of what is written for people: comments and docstrings, and all of what is no Python."""
        for name, path in self.files.items():
            if path.suffix in READ and (path.suffix or _is_script(path)):
                for line, text in _spoken(path.read_text()) if path.suffix == ".py" else [(1, path.read_text())]:
                    yield name, line, text


def _is_script(path: Path) -> bool:
    return path.name == "Dockerfile" or path.read_bytes()[:2] == b"#!"


def _spoken(source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            if text is not None:
                yield node.body[0].lineno, text


def anchors(page: str) -> list[str]:
    """The places of a page that a link may name: explicit ids, and headings as GitHub names them."""
    prose = re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#{1,6} (.+)$", prose, re.MULTILINE)
    slugs = [re.sub(r"[^\w\- ]", "", re.sub(r"<[^>]*>", "", one)).strip().lower().replace(" ", "-") for one in headings]
    return [*re.findall(r'<a id="([^"]+)"></a>', prose), *slugs]


def is_file(tree: Tree, file: str, text: str) -> bool:
    """From the root, from the folder of the file that names it, or from one above that; a module may lack its .py."""
    folders = [file.rsplit("/", n)[0] + "/" for n in range(1, file.count("/") + 1)]
    found = (f"{folder}{text.strip('/')}" for folder in ("", *folders))
    return any(tree.has(one) or f"{one}.py" in tree.files for one in found)


def is_module(tree: Tree, _: str, text: str) -> bool:
    """A module, a package, or a name that one of them defines at its top."""
    first, *rest = text.split(".")
    path = PACKAGES.get(first, first)
    while rest and tree.has(f"{path}/{rest[0]}"):
        path = f"{path}/{rest.pop(0)}"
    if rest and f"{path}/{rest[0]}.py" in tree.files:
        path = f"{path}/{rest.pop(0)}.py"
    else:
        path += "/__init__.py"
    return path in tree.files and (not rest or defines(tree.text(path), rest[0]))


def defines(source: str, name: str) -> bool:
    """Whether the source has this name at its top, its own or imported."""
    pattern = rf"^(?:(?:async )?def|class) {name}\b|^{name}\b[^=\n]*=|^(?:from|import)\b[^(\n]*\b{name}\b|^    {name},$"
    return re.search(pattern, source, re.MULTILINE) is not None


def is_class(tree: Tree, file: str, text: str) -> bool:
    """A file and a `Name` after it: the file defines the class."""
    path, name = text.strip("`").split("` `")
    return path not in tree.files or re.search(rf"^class {name}\b", tree.text(path), re.MULTILINE) is not None


def is_anchor(tree: Tree, _: str, text: str) -> bool:
    """A citation of the contract."""
    return text.split("#")[1] in anchors(tree.text("docs/reference/contract.md"))


def is_link(tree: Tree, file: str, text: str) -> bool:
    """A link of a page: to a file, and to a place in a page."""
    target, _, anchor = text.partition("#")
    here = (tree.root / file).parent
    path = (here / target).resolve() if target else tree.root / file
    return path.exists() and (not anchor or anchor in anchors(path.read_text()))


def is_decision(tree: Tree, _: str, text: str) -> bool:
    """decision 0007."""
    return any(name.startswith(f"docs/decisions/{text[-4:]}-") for name in tree.files)


def is_nothing(_: Tree, __: str, ___: str) -> bool:
    """No section of ours has a number: name an anchor."""
    return False


def is_flag(tree: Tree, _: str, text: str) -> bool:
    """A flag that one of our programs takes."""
    return text in tree.said


def is_variable(tree: Tree, _: str, text: str) -> bool:
    """A variable of the environment that one of our programs reads."""
    return text in tree.said


_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
_FILE = rf"(?<![\w./@:<-])(?:\./)?((?:{_NAME}/)*{_NAME}\.(?:py|md|yml|toml|sh|lua|json|svg))(?![\w/-])"
KINDS: dict[str, tuple[str, str, Callable[[Tree, str, str], bool]]] = {
    # kind: the suffixes of files in which it is looked for, the expression, how it is resolved
    "file": (".py .md .yml .toml .sh", _FILE, is_file),
    "folder": (".py .md .yml .toml .sh", r"(?<![\w./@:<-])((?:TOP)(?:/[\w-]+)+|(?:TOP)/)(?![\w.]*[\w*{<-])", is_file),
    "module": (".py .md", r"(?<![\w./-])((?:PACKAGES)(?:\.[A-Za-z_]\w*)+)(?![\w(-])", is_module),
    "class": (".py .md", r"(`[\w./]+\.py` `[A-Z]\w*`)", is_class),
    "anchor": (".py .md .yml .toml .sh", r"\b(contract#[a-z0-9-]+)", is_anchor),
    "link": (".md", r"\]\((?!https?://|mailto:)([^)\s]+)\)", is_link),
    "decision": (".py .md .yml .toml .sh", r"\b(decisions? [0-9]{4})\b", is_decision),
    "section": (".py .md .yml .toml .sh", r"(?<!RFC \d{4}\s)(?<!RFC \d{4},\s)\b(section [0-9]+)\b", is_nothing),
    "flag": (".py .md", r"(?<![\w-])(--[a-z][a-z-]*[a-z])\b", is_flag),
    "variable": (".py .md .yml .toml .sh", r"\b(BATCHMETA_[A-Z_]+)\b", is_variable),
}


def pointers(tree: Tree) -> Iterator[Pointer]:
    """All that the tree's prose points at, resolved or not."""
    for file, line, text in tree.prose():
        suffix = Path(file).suffix or ".sh"
        for kind, (suffixes, pattern, _) in KINDS.items():
            if suffix in suffixes.split():
                expression = pattern.replace("TOP", tree.top).replace("PACKAGES", tree.packages)
                for match in re.finditer(expression, text):
                    yield Pointer(file, line + text.count("\n", 0, match.start(1)), kind, match[1])


def resolves(tree: Tree, pointer: Pointer) -> bool:
    """Whether what it points at is there."""
    return KINDS[pointer.kind][2](tree, pointer.file, pointer.text.rstrip("."))
