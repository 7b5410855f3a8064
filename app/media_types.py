"""Media types and codings: what a caller accepts, and in what form a body comes (contract#media-types)."""

import re
from collections.abc import Mapping
from functools import lru_cache

from .errors import NotAcceptable, UnsupportedMediaType

JSON = "application/json"
OCTETS = "application/octet-stream"
_CODINGS = {b"content-encoding": b"identity", b"transfer-encoding": b"chunked"}


def check_accept(accept: str | None, offered: str) -> None:
    """Raises NotAcceptable where the header rules out the media type of our answer."""
    if accept is not None and not _accepts(accept, offered):
        raise NotAcceptable(f"only {offered} is offered: send Accept: {offered}, or no Accept")


@lru_cache(256)
def _accepts(accept: str, offered: str) -> bool:
    """The most specific range that holds it decides (RFC 9110 section 12.5.1); no range at all is no wish."""
    ranges = [part for part in re.sub(r"\s", "", accept).lower().split(",") if part]
    wanted = {r.split(";")[0]: not re.search(r";q=0(\.0*)?(;|$)", r) for r in ranges}
    return next((wanted[r] for r in (offered, "application/*", "*/*") if r in wanted), not ranges)


def check_codings(headers: Mapping[bytes, bytes]) -> None:
    """A body comes as it is, whole or in chunks: nothing is unpacked here. Raises UnsupportedMediaType."""
    if _CODINGS.keys().isdisjoint(headers):
        return
    for name, known in _CODINGS.items():
        if headers.get(name, known).strip().lower() != known:
            shown = name.decode().title()
            raise UnsupportedMediaType(
                f"header {shown}: only {known.decode()} is taken: send the body as it is, without this header",
                errors=[(f"header.{shown}", f"must be {known.decode()}, or left out")],
            )
