"""The hash that identifies conversations, messages and attachments by their text. A pure function."""

import hashlib


def digest(*parts: str) -> str:
    """Return the SHA-256 of parts, each prefixed with its length."""
    pieces: list[bytes] = []
    for part in parts:
        data = part.encode()
        pieces += (len(data).to_bytes(8, "big"), data)
    return hashlib.sha256(b"".join(pieces)).hexdigest()
