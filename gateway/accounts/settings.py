"""Types of the account settings. Imports no other module of Daybook, since the settings import it."""

from dataclasses import dataclass

# From least to most privileged; described in gateway.accounts.roles.
ROLES = ("user", "auditor", "staff", "administrator")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenID:
    """An OpenID provider. `roles` maps groups to roles; if it is empty, roles are assigned in the admin."""

    issuer: str
    client_id: str
    client_secret: str
    name: str
    scopes: str
    groups_claim: str
    roles: dict[str, str]
