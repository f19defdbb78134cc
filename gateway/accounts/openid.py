"""Sign-in with an OpenID provider, using authlib: authorization code flow with state, nonce and PKCE, and an ID token
whose signature, issuer, audience and expiry are checked. This module contains the two views and reads the claims."""

import logging
from typing import Any

import requests
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.django_client import OAuth
from django.conf import settings
from django.contrib.auth import login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET
from joserfc.errors import JoseError

from gateway.accounts.identities import Person, person_sign_in
from gateway.accounts.openid_http import SECONDS, BoundedApp
from gateway.accounts.settings import OpenID
from gateway.accounts.sign_in import PASSWORD_BACKEND
from gateway.oauth.addresses import keep_opener, public_origin
from memories.database.access import release_connection
from memories.errors import Forbidden

logger = logging.getLogger("daybook.sign_in")
PENDING_SECONDS = 3600
"""How long the session of an unfinished sign-in is stored. Anyone can start one, and each is a row."""
MAX_PENDING = 5
"""How many unfinished sign-ins one browser may have. Each makes its session longer, which is written as a whole."""
_MAX_NEXT_CHARS = 5_000  # the consent page's address has the longest query
_NEXT = "daybook.openid_next"
_PENDING = "_state_"  # authlib's keys in the session
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
_MAX_GROUPS = 10_000
_ERRORS = (AuthlibBaseError, JoseError, requests.RequestException, ValueError, KeyError, TypeError, RuntimeError)
_clients: dict[str, Any] = {}


@never_cache
@require_GET
def openid_begin(request: HttpRequest) -> HttpResponse:
    """`/login/sso/`: redirect to the provider."""
    configured = _configured()
    next_url = request.GET.get("next", "")
    safe = url_has_allowed_host_and_scheme(next_url, {request.get_host()}, require_https=request.is_secure())
    request.session[_NEXT] = next_url if safe and len(next_url) <= _MAX_NEXT_CHARS else "/"
    pending = [key for key in request.session.keys() if key.startswith(_PENDING)]  # noqa: SIM118 - not a dictionary
    for key in pending[: max(0, len(pending) - MAX_PENDING + 1)]:  # make room for this one
        del request.session[key]
    if not request.user.is_authenticated:
        request.session.set_expiry(PENDING_SECONDS)
    try:
        release_connection()
        callback = public_origin(request) + reverse("openid-callback")
        response: HttpResponse = _client(configured).authorize_redirect(request, callback)
    except _ERRORS as error:
        return _failure_page(request, error)
    keep_opener(response, next_url)
    return response


@never_cache
@require_GET
def openid_callback(request: HttpRequest) -> HttpResponse:
    """`/login/sso/callback/`: sign in a person whom the provider redirected back."""
    configured = _configured()
    try:
        release_connection()
        person = _person(_claims(request, configured), configured)
    except _ERRORS as error:
        return _failure_page(request, error)
    try:
        user = person_sign_in(person, configured.roles)
    except Forbidden as refusal:
        return _page(request, str(refusal), 403)
    next_url = request.session.pop(_NEXT, "/")
    request.session.set_expiry(None)
    login(request, user, backend=PASSWORD_BACKEND)
    response = redirect(next_url)
    keep_opener(response, next_url)
    return response


def _configured() -> OpenID:
    """Return the configured provider. Raises Http404."""
    configured: OpenID | None = settings.OIDC
    if configured is None:
        raise Http404
    return configured


def _client(configured: OpenID) -> Any:
    """Return authlib's client with the provider's metadata, which is read once. Raises the errors in _ERRORS."""
    client = _clients.get(configured.issuer)
    if client is None:
        issuer = configured.issuer.rstrip("/")
        client = OAuth().register(
            "daybook",
            client_cls=BoundedApp,
            client_id=configured.client_id,
            client_secret=configured.client_secret or None,
            server_metadata_url=f"{issuer}/.well-known/openid-configuration",
            client_kwargs={
                "scope": configured.scopes,
                "code_challenge_method": "S256",
                "default_timeout": SECONDS,
                "max_redirects": 0,  # a redirected request would take the client secret or a token to another host
            },
        )
        metadata = client.load_server_metadata()
        if str(metadata.get("issuer")).rstrip("/") != issuer:
            raise ValueError(f"the provider calls itself {metadata.get('issuer')!r}")
        # Never accept unsigned tokens or symmetric signatures, even if the provider lists them.
        offered = metadata.get("id_token_signing_alg_values_supported") or ["RS256"]
        metadata["id_token_signing_alg_values_supported"] = [name for name in offered if name in _ALGORITHMS]
        methods = metadata.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        if configured.client_secret and "client_secret_basic" not in methods:
            client.client_kwargs["token_endpoint_auth_method"] = "client_secret_post"  # noqa: S105 - a method name
        _clients[configured.issuer] = client
    return client


def _claims(request: HttpRequest, configured: OpenID) -> dict[str, Any]:
    """Return the claims of the validated ID token, merged with those of the userinfo endpoint if there is one."""
    client = _client(configured)
    required = {
        "iss": {"essential": True, "value": client.server_metadata["issuer"]},
        "aud": {"essential": True, "value": configured.client_id},
        "sub": {"essential": True},
        "exp": {"essential": True},
    }
    token = client.authorize_access_token(request, claims_options=required)
    claims = dict(token["userinfo"])
    if client.load_server_metadata().get("userinfo_endpoint"):
        userinfo = dict(client.userinfo(token=token))
        if userinfo.get("sub") == claims["sub"]:  # otherwise it describes another person
            if userinfo.get("email") != claims.get("email", userinfo.get("email")):
                userinfo.pop("email_verified", None)  # refers to another address
            claims = userinfo | claims
    return claims


def _person(claims: dict[str, Any], configured: OpenID) -> Person:
    groups = claims.get(configured.groups_claim) or []
    groups = [groups] if isinstance(groups, str) else groups
    email = claims.get("email") if claims.get("email_verified") is True else ""
    subject = claims["sub"]
    if not isinstance(subject, str) or not 0 < len(subject) <= 255 or not subject.isprintable():
        raise ValueError("the claim sub has 1 to 255 printable characters")
    return Person(
        issuer=configured.issuer.rstrip("/"),
        subject=subject,
        name=_text(claims, "preferred_username"),
        email=email if isinstance(email, str) and "@" in email and email.isprintable() else "",
        first_name=_text(claims, "given_name"),
        last_name=_text(claims, "family_name"),
        groups=frozenset(group for group in groups[:_MAX_GROUPS] if isinstance(group, str)),
    )


def _text(claims: dict[str, Any], name: str) -> str:
    value = claims.get(name)
    return value.strip() if isinstance(value, str) and value.isprintable() else ""


def _failure_page(request: HttpRequest, error: Exception) -> HttpResponse:
    """Return a page which says that sign-in failed, and log the reason without tokens."""
    refusal = isinstance(error, AuthlibBaseError)  # refused by the provider, or an unknown state
    if not refusal:
        _clients.clear()  # its keys or addresses may have changed
    detail = str(getattr(error, "error", "") or error)[:200]  # may come from anyone
    logger.warning("single sign-on failed: %s: %s", type(error).__name__, detail)
    return _page(
        request,
        "Sign-in failed. Try again, or ask an administrator: the server’s log says why.",
        400 if refusal else 502,
    )


def _page(request: HttpRequest, why: str, status: int) -> HttpResponse:
    return render(request, "gateway/openid_failed.html", {"why": why}, status=status)
