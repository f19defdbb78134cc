"""The shapes of what the settings say about people. Imports nothing of ours: the settings are made of these."""

from dataclasses import dataclass

# From the least to the most; gateway.accounts.roles says what each means.
ROLES = ("user", "auditor", "staff", "administrator")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """A mail server, and the address that mails come from. With `starttls` the connection begins in the clear, with
    `tls` it does not."""

    host: str
    port: int
    user: str
    password: str
    starttls: bool
    tls: bool
    sender: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenID:
    """An OpenID provider. `roles` maps groups to roles; without any, roles are what the administration says."""

    issuer: str
    client_id: str
    client_secret: str
    name: str
    scopes: str
    groups_claim: str
    roles: dict[str, str]
