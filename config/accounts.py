"""Settings of the mail server, the OpenID provider, and password sign-in."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from config.account_environment import MAIL_SCHEMES
from config.environment import ConfigurationError, Environment, split_list
from gateway.accounts.settings import ROLES, OpenID

# The variables that are ignored without another one, by the beginning of their names.
_NEEDED = {"oidc_": "oidc_issuer", "mail_": "mail_url", "alerts_secret": "alerts_url"}


def mail(env: Environment) -> dict[str, Any] | None:
    """Return Django's settings of the mail server; None if none is configured. Raises ConfigurationError."""
    parts = urlsplit(env.mail_url.get_secret_value())
    if not parts.hostname:
        if env.alerts_mail:
            raise ConfigurationError("DAYBOOK_MAIL_URL is not set, but DAYBOOK_ALERTS_MAIL is; set both.")
        return None
    if not env.mail_from:
        raise ConfigurationError("DAYBOOK_MAIL_FROM is not set, but DAYBOOK_MAIL_URL is; set both.")
    return {
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": parts.port or MAIL_SCHEMES[parts.scheme],
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_TLS": parts.scheme == "smtp+tls",
        "EMAIL_USE_SSL": parts.scheme == "smtps",
        "EMAIL_TIMEOUT": 10,
        "DEFAULT_FROM_EMAIL": env.mail_from.strip(),
    }


def oidc(env: Environment) -> OpenID | None:
    """Return the OpenID provider; None if none is configured. Raises ConfigurationError."""
    if not env.oidc_issuer:
        return None
    if not env.oidc_client_id:
        raise ConfigurationError("DAYBOOK_OIDC_CLIENT_ID is not set, but DAYBOOK_OIDC_ISSUER is; set both.")
    if "openid" not in env.oidc_scopes.split():
        raise ConfigurationError("DAYBOOK_OIDC_SCOPES must contain openid.")
    return OpenID(
        issuer=env.oidc_issuer,
        client_id=env.oidc_client_id,
        client_secret=env.oidc_client_secret.get_secret_value(),
        name=env.oidc_name,
        scopes=env.oidc_scopes,
        groups_claim=env.oidc_groups_claim,
        roles=_roles(env.oidc_roles),
    )


def passwords_allowed(env: Environment) -> bool:
    """Return True unless people sign in with OpenID Connect only. Raises ConfigurationError."""
    if not env.passwords and not env.oidc_issuer:
        raise ConfigurationError("DAYBOOK_PASSWORDS is false, which needs DAYBOOK_OIDC_ISSUER; nobody could sign in.")
    return env.passwords


def ignored_variables(env: Environment) -> Iterator[str]:
    """Yield a sentence for variables that are given but ignored, since one that they need is not set."""
    for prefix, needed in _NEEDED.items():
        given = sorted(name for name in env.model_fields_set if name.startswith(prefix))
        if given and needed not in env.model_fields_set:
            names = ", ".join(f"DAYBOOK_{name.upper()}" for name in given)
            yield f"{names}: ignored, since DAYBOOK_{needed.upper()} is not set"


def _roles(given: str) -> dict[str, str]:
    """Return the role of each group. Names of groups may contain `=`; names of roles do not."""
    roles = {}
    for pair in split_list(given):
        group, _, role = pair.rpartition("=")
        if not group.strip() or role.strip() not in ROLES:
            raise ConfigurationError(
                f"DAYBOOK_OIDC_ROLES has '{pair}'; allowed is group=role, where the role is one of {', '.join(ROLES)}."
            )
        roles[group.strip()] = role.strip()
    return roles
