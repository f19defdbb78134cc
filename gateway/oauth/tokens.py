"""The format of tokens and the names of scopes. The library stores only the SHA-256 of a token."""

import secrets
from typing import Any

PREFIX = "dbo_"
_REFRESH_PREFIX = "dbr_"
READ, WRITE = "memory:read", "memory:write"
SCOPES = (READ, WRITE)


def is_access_token(plain: str) -> bool:
    """Return True if a credential is an access token rather than an API key, judging by its prefix."""
    return plain.startswith(PREFIX)


def access_token_create(request: Any) -> str:
    """Return a new access token. oauthlib calls this with its request."""
    return PREFIX + secrets.token_urlsafe(32)


def refresh_token_create(request: Any) -> str:
    """Return a new refresh token. oauthlib calls this with its request."""
    return _REFRESH_PREFIX + secrets.token_urlsafe(32)


def scopes_of(*, read_only: bool) -> list[str]:
    return [READ] if read_only else [*SCOPES]
