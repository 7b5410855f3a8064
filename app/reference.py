"""Makes the generated pages of docs/reference from the tables that the service runs on."""

import json
from collections.abc import Iterable, Iterator
from inspect import getdoc
from typing import cast

import msgspec
import orjson

from batchmeta.wire import PROBLEMS
from core.errors import Refused
from core.samplers import SAMPLERS

from .application import openapi
from .contract import Operation
from .media_types import OCTETS
from .routes import ALL
from .settings import SETTINGS
from .state_pictures import states

# Where the contract says what the calls of a tag mean together.
_SECTIONS = {
    "server": "server",
    "partitions": "partitions",
    "samples": "samples",
    "production": "produce",
    "batch meta": "batch-meta",
    "tasks": "claims",
    "claims": "leases",
    "clears": "clears",
    "checkpoints": "checkpoints",
}
_MADE = "<!-- made by scripts/reference.py: do not edit -->\n\n"


def pages() -> dict[str, bytes]:
    """File name to content."""
    texts = {
        "api.md": _api(),
        "errors.md": _errors(),
        "samplers.md": _samplers(),
        "settings.md": _settings(),
        "states.md": states(),
    }
    documents = {"openapi.json": orjson.dumps(openapi(), option=orjson.OPT_INDENT_2) + b"\n"}
    return documents | {name: (_MADE + text).encode() for name, text in texts.items()}


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def _settings() -> str:
    rows = ((f"`{s.flag}`", f"`{s.variable}`", f"`{s.default}`" if s.default else "none", s.help) for s in SETTINGS)
    return (
        "# Settings\n\nFlags win over the environment, the environment over defaults. An unknown or malformed one "
        "stops the start with one line. `--help`, `--version` and `--verify` (look through the data folder) tell "
        "something and end.\n\n" + _table(("flag", "environment", "default", "meaning"), rows)
    )


def _refusals(kind: type[Refused]) -> Iterator[type[Refused]]:
    for child in kind.__subclasses__():
        yield child
        yield from _refusals(child)


def _errors() -> str:
    words = {kind.code: (getdoc(kind) or "").splitlines()[0] for kind in _refusals(Refused) if "code" in vars(kind)}
    rows = (
        (str(kind.status), f"`{code}`", kind.title, "yes" if kind.retryable else "", words.get(code, ""))
        for code, kind in PROBLEMS.items()
    )
    return (
        "# Errors\n\nEvery error is an RFC 9457 problem (`application/problem+json`) with `type`, `title`, `status`, "
        "`detail`, `code`, `retryable` and `request_id`; where it helps also `errors` (`loc`, `msg`), "
        "`global_indexes`, `keys` or `fields`. A refused call changed nothing. "
        "Retryable: the same call may succeed later.\n\n"
        + _table(("status", "code", "title", "retryable", "what to do"), rows)
    )


def _samplers() -> str:
    intro = (
        '# Samplers\n\nA claim\'s `sampler` names which rows it takes: `{"name": …}` with its arguments beside it. A '
        "`weight` is a path into custom meta: dotted, or an array of members. How an operator adds samplers: "
        "[your own sampler](../how-to/own-sampler.md).\n"
    )
    parts = [intro]
    for name, kind in SAMPLERS.items():
        arguments = "".join(map(_argument, msgspec.structs.fields(cast("type[msgspec.Struct]", kind))))
        parts.append(f"## `{name}`\n\n{getdoc(kind)}\n" + (f"\n{arguments}" if arguments else ""))
    return "\n".join(parts)


def _argument(field: msgspec.structs.FieldInfo) -> str:
    return f"* `{field.encode_name}`, {'required' if field.required else f'default `{json.dumps(field.default)}`'}\n"


def _api() -> str:
    intro = (
        "# API\n\nThe same as a server's `/docs` and [openapi.json](openapi.json), which has each member's meaning and "
        "limits too. The rules that all calls share, and what the calls mean together, are in "
        "[the contract](contract.md). Bodies are JSON. A *column* is an array with one value per sample, or "
        '`{"const": v}`.\n\n'
        "Every call that changes something takes `Idempotency-Key` (1 to 200 printable ASCII characters, made anew for "
        "each call). Sent again with it, the same request changes nothing more and gets the first reply, byte for "
        "byte, with `Idempotency-Replayed: true`, also after a restart; another request under the key is refused with "
        "`idempotency-mismatch`; while the first is on its way, with `idempotency-in-flight`.\n"
    )
    parts = [intro, _table(("method", "path", "what it does", "rules"), map(_line, _operations()))]
    for routes in ALL:
        parts.append(f"## {_title(routes.tag)}\n\nRules: [contract](contract.md#{_SECTIONS[routes.tag]}).\n")
        parts += [_operation(operation) for operation in routes.operations]
    return "\n".join(parts)


def _title(tag: str) -> str:
    return tag[:1].upper() + tag[1:]


def _operations() -> Iterator[Operation]:
    return (operation for routes in ALL for operation in routes.operations)


def _line(op: Operation) -> tuple[str, str, str, str]:
    rules = f"[{op.tag}](contract.md#{_SECTIONS[op.tag]})"
    return op.method, f"`{op.path}`", f"[{op.summary}](#call-{op.operation_id})", rules


def _operation(op: Operation) -> str:
    codes = ", ".join(f"`{code}`" for code in op.errors)
    reads = op.method in ("GET", "DELETE")
    members = ", ".join(f"`{member}`" for member in op.takes.__struct_fields__)
    lines = [
        f'### {op.summary}\n<a id="call-{op.operation_id}"></a>\n',
        f"`{op.method} {op.path}` · {op.operation_id}\n",
    ]
    if op.description:
        lines.append(op.description + "\n")
    if members:
        lines.append(f"{'Query' if reads else 'Members'}: {members}\n")
    if op.is_stream and not reads:
        lines.append(f"Body: the file, `{OCTETS}`.\n")
    elif not reads:
        lines.append(f"```json\n{_json(op.example)}\n```\n")
    several = isinstance(op.reply_example, dict) and set(op.reply_example) == set(op.replies)
    for status in op.replies if several else [min(op.replies)]:
        example = op.reply_example[status] if several else op.reply_example
        if op.replies[status] is bytes:
            lines.append(f"→ {status}: the file, `{OCTETS}`\n")
            continue
        lines.append(f"→ {status if several else ', '.join(map(str, op.replies))}\n\n```json\n{_json(example)}\n```\n")
    if codes:
        lines.append(f"Refuses with {codes}.\n")
    return "\n".join(lines)


def _json(value: object) -> str:
    """Members one to a line, their values on it."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value)
    return "{\n" + ",\n".join(f"  {json.dumps(name)}: {json.dumps(member)}" for name, member in value.items()) + "\n}"
