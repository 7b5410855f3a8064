"""The digest of a file as HTTP writes it: `Repr-Digest` with SHA-256 (RFC 9530), a dictionary of RFC 8941."""

import binascii
import re
from base64 import b64decode, b64encode

from core.errors import Invalid

_MEMBER = re.compile(r"\s*([a-z*][a-z0-9_.*-]*)=:([A-Za-z0-9+/]*={0,2}):\s*")
_BYTES = 32


def repr_digest(sha256: str) -> bytes:
    """The header's value of a SHA-256 in hex."""
    return b"sha-256=:%b:" % b64encode(bytes.fromhex(sha256))


def sha256_of(header: str | None) -> str | None:
    """The SHA-256 that the header names, in hex; None where there is no header. Raises Invalid for another one."""
    if header is None:
        return None
    found = [_MEMBER.fullmatch(part) for part in header.split(",")]
    digests = {member[1]: member[2] for member in found if member}
    if None in found or "sha-256" not in digests:
        raise Invalid.at(
            "header.Repr-Digest", "must be sha-256=:…: with the SHA-256 of the file in base64, or left out"
        )
    try:
        digest = b64decode(digests["sha-256"], validate=True)
    except binascii.Error:
        digest = b""
    if len(digest) != _BYTES:
        raise Invalid.at("header.Repr-Digest", f"sha-256 must be {_BYTES} bytes in base64")
    return digest.hex()
