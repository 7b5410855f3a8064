"""Checks an `Idempotency-Key`, and makes the digest of the request that it stands for. Core keeps the replies."""

from hashlib import blake2b

from core.errors import Invalid
from core.state.kept_replies import Keyed

MAX_LENGTH = 200
PATTERN = "^[!-~]([ -~]*[!-~])?$"  # HTTP takes blanks at either end away
NAME = "Idempotency-Key"


def checked(key: str) -> str:
    """The key as it came. Raises Invalid."""
    if not (1 <= len(key) <= MAX_LENGTH and key.isascii() and key.isprintable()):
        raise Invalid(
            f"header {NAME}: give 1 to {MAX_LENGTH} printable ASCII characters, e.g. a UUID, made anew for each call",
            errors=[(f"header.{NAME}", f"must be 1 to {MAX_LENGTH} printable ASCII characters")],
        )
    return key


def keyed(key: str, method: str, path: str, query: bytes, body: bytes, principal: str = "") -> Keyed:
    """The key, and a digest of all that makes a request the same one. `principal`: who calls; so far, nobody's name."""
    digest = blake2b(digest_size=32)
    for part in (method.encode(), path.encode(), query, principal.encode(), body):
        digest.update(b"%d:" % len(part))  # so that no two lists of parts are the same bytes
        digest.update(part)
    return Keyed(key, digest.digest())
