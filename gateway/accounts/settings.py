"""The type of a setting about people. Imports no other module of Daybook, since the settings import it."""

from dataclasses import dataclass

# From the least to the most; gateway.accounts.roles says what each means.
ROLES = ("user", "auditor", "staff", "administrator")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenID:
    """An OpenID provider. `roles` maps groups to roles; if it is empty, roles are given in the administration."""

    issuer: str
    client_id: str
    client_secret: str
    name: str
    scopes: str
    groups_claim: str
    roles: dict[str, str]
