"""The form of tokens and the names of their scopes. The library stores the SHA-256 of a token, never the token."""

import secrets
from typing import Any

PREFIX = "dbo_"
_REFRESH_PREFIX = "dbr_"
READ, WRITE = "memory:read", "memory:write"
SCOPES = (READ, WRITE)


def is_access_token(plain: str) -> bool:
    """Return True if a credential looks like an access token; API keys look otherwise."""
    return plain.startswith(PREFIX)


def access_token_make(request: Any) -> str:
    """Return a new access token. oauthlib calls this with its request."""
    return PREFIX + secrets.token_urlsafe(32)


def refresh_token_make(request: Any) -> str:
    """Return a new refresh token. oauthlib calls this with its request."""
    return _REFRESH_PREFIX + secrets.token_urlsafe(32)


def scopes_of(*, read_only: bool) -> list[str]:
    return [READ] if read_only else [*SCOPES]
