"""Settings of django-oauth-toolkit: only authorization codes with PKCE, and rotating refresh tokens. Daybook uses the
library's models, its validator and oauthlib, with pages and endpoints of its own (gateway.oauth)."""

from typing import Any

OAUTH2_PROVIDER: dict[str, Any] = {
    "OAUTH2_SERVER_CLASS": "oauthlib.oauth2.WebApplicationServer",
    "OAUTH2_VALIDATOR_CLASS": "gateway.oauth.validator.Validator",
    "ACCESS_TOKEN_GENERATOR": "gateway.oauth.tokens.access_token_create",
    "REFRESH_TOKEN_GENERATOR": "gateway.oauth.tokens.refresh_token_create",
    "OAUTH_PRE_TOKEN_VALIDATION": [],
    "SCOPES": {"memory:read": "Read memories", "memory:write": "Write memories"},
    "READ_SCOPE": "memory:read",
    "WRITE_SCOPE": "memory:write",
    "AUTHORIZATION_CODE_EXPIRE_SECONDS": 60,
    "ACCESS_TOKEN_EXPIRE_SECONDS": 3600,
    "REFRESH_TOKEN_EXPIRE_SECONDS": 30 * 24 * 3600,
    "REFRESH_TOKEN_REUSE_PROTECTION": True,
    "CLEAR_EXPIRED_TOKENS_BATCH_SIZE": 500,  # to keep locks short
    "ALLOW_LOCALHOST_LOOPBACK": True,
    "PKCE_REQUIRED": True,
    "OIDC_ENABLED": False,
    "COMPLIANT_BCP_RFC9700_IMPLICIT_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PASSWORD_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PKCE_METHOD": True,
    "COMPLIANT_BCP_RFC9700_ACCESS_TOKEN_TRANSPORT": True,
    "COMPLIANT_BCP_RFC9700_AUTHZ_RESPONSE_ISS": True,
    "COMPLIANT_BCP_RFC9700_TOKEN_STORAGE": True,
    "COMPLIANT_BCP_RFC9700_REFRESH_TOKEN": True,
    "COMPLIANT_BCP_RFC9700_REDIRECT_URI_MATCHING": True,
    "COMPLIANT_BCP_RFC9700_PKCE_REQUIRED": True,
}
