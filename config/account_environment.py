"""Variables for signing in, mail and alerts. Part of config.environment.Environment."""

import base64
import binascii
import re
from urllib.parse import unquote, urlsplit

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings

from gateway.web_addresses import is_web_address, url_parts

MAIL_SCHEMES = {"smtp": 25, "smtp+tls": 587, "smtps": 465}
_SECRET_BYTES = range(24, 65)  # what Standard Webhooks allows
_MAIL_ADDRESS = re.compile(
    r"""(?P<name>(?:"[^"]*"\s*|[^"<>@]*)<)?(?:[^\s@<>"]+|"[^"]+")@(?P<domain>[^\s@<>"]+)(?(name)>)"""
)
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


class AccountEnvironment(BaseSettings):
    passwords: bool = Field(True, description="People may sign in with a password; false needs OpenID Connect.")
    oidc_issuer: str = Field("", max_length=255, description="Address of the OpenID provider; empty: none.")
    oidc_client_id: str = Field("", description="Client id of this Daybook at the provider.")
    oidc_client_secret: SecretStr = Field(SecretStr(""), description="The client secret.")
    oidc_name: str = Field(
        "single sign-on", min_length=1, max_length=60, description="Text of the button after “Sign in with”."
    )
    oidc_scopes: str = Field("openid email profile", description="Scopes requested from the provider.")
    oidc_groups_claim: str = Field("groups", min_length=1, description="The claim with a person's groups.")
    oidc_roles: str = Field(
        "", description="Roles of groups, such as staff-of-x=auditor, separated by commas; empty: roles do not change."
    )
    mail_url: SecretStr = Field(
        SecretStr(""), description="Mail server: smtp+tls://user:password@host:587, or smtps:// or smtp://."
    )
    mail_from: str = Field("", description="Sender of mails.")
    alerts_mail: str = Field("", description="Addresses that alerts are mailed to, separated by commas.")
    alerts_url: SecretStr = Field(SecretStr(""), description="URL that alerts are posted to as JSON.")
    alerts_secret: SecretStr = Field(
        SecretStr(""), description="Secret (`whsec_…`) for signing posted alerts; empty: they are not signed."
    )

    @field_validator("oidc_issuer")
    @classmethod
    def _issuer(cls, value: str) -> str:
        if value and not (
            is_web_address(value) and (value.startswith("https:") or urlsplit(value).hostname in _LOOPBACK)
        ):
            raise ValueError("allowed are https:// addresses, and http:// on this machine")
        return value

    @field_validator("mail_url")
    @classmethod
    def _mail_server(cls, value: SecretStr) -> SecretStr:
        parts = url_parts(value.get_secret_value())
        host = parts.hostname if parts and parts.scheme in MAIL_SCHEMES else None
        if parts is None or (parts.geturl() and (not host or re.search(r"\s", host))):
            raise ValueError("allowed are smtp+tls://user:password@host:port, smtps://… and smtp://…")
        if not unquote(parts.netloc.rpartition("@")[0]).isascii():
            raise ValueError("the name and the password must be ASCII, since SMTP cannot send others")
        return value

    @field_validator("mail_from")
    @classmethod
    def _mail_address(cls, value: str) -> str:
        if value.strip() and not _is_mail_address(value):
            raise ValueError("allowed is one mail address")
        return value

    @field_validator("alerts_mail")
    @classmethod
    def _mail_addresses(cls, value: str) -> str:
        if not all(_is_mail_address(address) for address in value.split(",") if address.strip()):
            raise ValueError("allowed are mail addresses")
        return value

    @field_validator("alerts_url")
    @classmethod
    def _alerts_address(cls, value: SecretStr) -> SecretStr:
        if value and not is_web_address(value.get_secret_value(), query=True):
            raise ValueError("allowed are http:// and https:// addresses")
        return value

    @field_validator("alerts_secret")
    @classmethod
    def _signing_secret(cls, value: SecretStr) -> SecretStr:
        prefix, _, key = value.get_secret_value().rpartition("_")
        try:
            usable = prefix == "whsec" and len(base64.b64decode(key, validate=True)) in _SECRET_BYTES
        except (binascii.Error, ValueError):
            usable = False
        if value and not usable:
            raise ValueError("allowed are whsec_ and 24 to 64 bytes in base64")
        return value


def _is_mail_address(value: str) -> bool:
    """Return True if this is a single mail address, with or without a display name."""
    match = _MAIL_ADDRESS.fullmatch(value.strip())
    try:
        return bool(match and match["domain"].encode("idna")) and value.isprintable()
    except UnicodeError:  # a label of the domain is empty or too long
        return False
