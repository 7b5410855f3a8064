"""Names every setting once: its flag, its environment variable, its default, and how its text is read."""

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from core.journal.home_path import at_home
from core.state.kept_replies import MAX_KEPT_BYTES

from .version import VERSION

PREFIX = "BATCHMETA_"
# What the client and the benchmark read: they may be set where a service is started.
OTHERS = ("BATCHMETA_URL", "BATCHMETA_JOB", "BATCHMETA_ANY_TRANSFERQUEUE", "BATCHMETA_BENCH_")
VERIFY = "--verify"
_ON, _OFF = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")


class SettingsRefused(Exception):
    """A setting is unknown or malformed; the message is one line that says what to change."""


def _port(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or int(text) > 65_535:
        raise ValueError("must be 0 to 65535 (0: any free port)")
    return int(text)


def _positive(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < 1:
        raise ValueError("must be a whole number, 1 or more")
    return int(text)


def _device(text: str) -> str:
    if not re.fullmatch(r"cpu|auto|(npu|cuda)(:\d+)?", text.lower()):
        raise ValueError("use cpu, npu, npu:0, cuda, cuda:0 or auto")
    return text.lower()


def _switch(text: str) -> bool:
    if text.lower() not in (*_ON, *_OFF):
        raise ValueError("use true or false")
    return text.lower() in _ON


def _host(text: str) -> str:
    """A name in lower case; an IPv6 address without the brackets that it has in a URL."""
    return (text[1:-1] if text.startswith("[") and text.endswith("]") else text).lower()


def _hosts(text: str) -> tuple[str, ...]:
    return tuple(host.strip().lower() for host in text.split(",") if host.strip())


def _samplers(text: str) -> tuple[tuple[str, str, str], ...]:
    found = tuple(_sampler(one.strip()) for one in text.split(",") if one.strip())
    if len({name for name, _, _ in found}) < len(found):
        raise ValueError("names a sampler twice")
    return found


def _sampler(text: str) -> tuple[str, str, str]:
    match = re.fullmatch(r"([a-z][a-z0-9_]{0,99})=([A-Za-z_][\w.]*):([A-Za-z_]\w*)", text)
    if match is None:
        raise ValueError("use name=package.module:Class, the name in a-z, 0-9 and _")
    return match[1], match[2], match[3]


def _level(text: str) -> str:
    if text.lower() not in ("debug", "info", "warning", "error"):
        raise ValueError("use debug, info, warning or error")
    return text.lower()


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table. `read` turns text into the value; raises ValueError that says what is accepted."""

    name: str
    default: str
    read: Callable[[str], Any]
    help: str

    @property
    def flag(self) -> str:
        """As on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """As in the environment."""
        return PREFIX + self.name.upper()


SETTINGS: tuple[Setting, ...] = (
    Setting("host", "127.0.0.1", _host, "address to listen on; beyond loopback it needs --allow-unauthenticated"),
    Setting("port", "8700", _port, "port to listen on; 0 takes any free one"),
    Setting(
        "journal",
        "file:data/journal",
        str,
        "where changes are kept: file:///folder, file:folder, file:~/folder or memory:",
    ),
    Setting(
        "checkpoints", "", at_home, "folder of the checkpoints; by default the journal's with .checkpoints at its end"
    ),
    Setting("restore", "", at_home, "file of a checkpoint to begin with; the journal's folder must be empty"),
    Setting(
        "min_free_bytes", str(256 * 2**20), _positive, "below this much free disk for the journal, changes get 503"
    ),
    Setting("device", "cpu", _device, "where readiness is kept: cpu, npu[:i], cuda[:i], or auto to measure and choose"),
    Setting("max_body_bytes", str(64 * 2**20), _positive, "largest request body, in bytes"),
    Setting("max_checkpoint_bytes", str(16 * 2**30), _positive, "largest checkpoint that may be uploaded, in bytes"),
    Setting("max_cell_bytes", str(64 * 2**10), _positive, "largest custom or backend meta value, in bytes"),
    Setting("kept_bytes", str(MAX_KEPT_BYTES), _positive, "memory for the replies kept by Idempotency-Key, in bytes"),
    Setting("max_waiting_per_client", "10000", _positive, "calls of one address that may wait at once"),
    Setting("allowed_hosts", "", _hosts, "further names (comma-separated) that callers may use as Host; * allows any"),
    Setting("allow_unauthenticated", "false", _switch, "listen beyond loopback without authentication"),
    Setting("realtime", "true", _switch, "ask for a real-time priority of the event loop, where the system allows it"),
    Setting("sampler", "", _samplers, "your own sampler as name=package.module:Class; several: again, or by commas"),
    Setting("log_level", "info", _level, "debug, info, warning or error"),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The values the service runs with; see SETTINGS for what each means."""

    host: str
    port: int
    journal: str
    checkpoints: str
    restore: str
    min_free_bytes: int
    device: str
    max_body_bytes: int
    max_checkpoint_bytes: int
    max_cell_bytes: int
    kept_bytes: int
    max_waiting_per_client: int
    allowed_hosts: tuple[str, ...]
    allow_unauthenticated: bool
    realtime: bool
    sampler: tuple[tuple[str, str, str], ...]
    log_level: str


def load(arguments: Sequence[str], environment: Mapping[str, str]) -> Settings:
    """Flags before environment before defaults. Raises SettingsRefused."""
    known = {setting.variable for setting in SETTINGS}
    stray = sorted(
        name for name in environment if name.startswith(PREFIX) and name not in known and not name.startswith(OTHERS)
    )
    if stray:
        raise SettingsRefused(f"{stray[0]} is no setting: use one of {', '.join(sorted(known))}")
    flags = vars(_parser().parse_args(arguments))
    values: dict[str, Any] = {}
    for setting in SETTINGS:
        flag = flags[setting.name]
        flag = ",".join(flag) if isinstance(flag, list) else flag
        source = setting.flag if flag is not None else setting.variable
        text = flag if flag is not None else environment.get(setting.variable, setting.default)
        values[setting.name] = _read(setting, source, text)
    return _checked(Settings(**values))


def _read(setting: Setting, source: str, text: str) -> object:
    try:
        return setting.read(text)
    except ValueError as error:
        raise SettingsRefused(f"{source}={text!r}: {error}") from error


def _checked(settings: Settings) -> Settings:
    if settings.host not in ("127.0.0.1", "::1", "localhost") and not settings.allow_unauthenticated:
        raise SettingsRefused(
            f"--host={settings.host!r} is beyond loopback, where anyone who reaches it may change anything: "
            "add --allow-unauthenticated if that is meant"
        )
    return settings


class _Parser(argparse.ArgumentParser):
    """Tells what is wrong in one line, where argparse would print its usage and end the process."""

    def error(self, message: str) -> NoReturn:
        raise SettingsRefused(f"{message}; --help lists the settings")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="scripts/serve", description="The batchmeta service.", allow_abbrev=False)
    for setting in SETTINGS:
        is_switch = setting.read is _switch
        parser.add_argument(
            setting.flag,
            dest=setting.name,
            action="append" if setting.read is _samplers else "store",
            metavar=None if is_switch else setting.name.upper(),
            help=f"{setting.help} [{setting.variable}, default {setting.default or 'none'}]".replace("%", "%%"),
            nargs="?" if is_switch else None,
            const="true" if is_switch else None,
        )
    parser.add_argument("--version", action="version", version=f"batchmeta {VERSION}", help="tell the version, and end")
    parser.add_argument(VERIFY, action="store_true", help="look through the data folder, tell any damage, and end")
    return parser
