"""`/oauth/token` and `/oauth/revoke`, which accept forms and return JSON, and the discovery documents: RFC 9728 (the
authorization server for `/mcp`) and RFC 8414 (the endpoints and features of that server). Apps use them without a login
or a key."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

from django.core.exceptions import BadRequest, SuspiciousOperation
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_POST, require_safe
from oauth2_provider.models import Application, Grant
from oauth2_provider.oauth2_backends import get_oauthlib_core

from gateway.api.errors import as_domain_error, error_response
from gateway.oauth.addresses import AUTHORIZE_PATH, public_origin, resource_of
from gateway.oauth.connections import app_disconnect, connection_of_token
from gateway.oauth.tokens import SCOPES
from memories.audit.log import Actor
from memories.database.access import in_thread

AsyncView = Callable[[HttpRequest], Coroutine[Any, Any, HttpResponse]]
MAX_BODY_BYTES = 16_000
_FORM = "application/x-www-form-urlencoded"


def json_view(view: AsyncView) -> AsyncView:
    """Decorate a view so that its exceptions become error responses as in the APIs."""

    @wraps(view)
    async def wrapped(request: HttpRequest) -> HttpResponse:
        try:
            return await view(request)
        except Exception as error:  # noqa: BLE001 - as_domain_error logs unexpected ones
            return error_response(as_domain_error(error), request.path_info)

    return wrapped


@require_POST
@json_view
async def token(request: HttpRequest) -> HttpResponse:
    """`/oauth/token`: exchange a code or a refresh token for a new access token and a new refresh token."""
    refusal = _refusal(request)
    return await in_thread(token_answer, request) if refusal is None else refusal


@require_POST
@json_view
async def revoke(request: HttpRequest) -> HttpResponse:
    """`/oauth/revoke` (RFC 7009): end the app's connection. An unknown token gets the same answer."""
    refusal = _refusal(request)
    return await in_thread(_revoke, request) if refusal is None else refusal


def oauth_error(error: str, description: str, *, status: int = 400) -> HttpResponse:
    """Return an error in the format of RFC 6749 and RFC 7591."""
    headers = {"WWW-Authenticate": f'Bearer error="{error}"'} if status == 401 else {}
    return JsonResponse({"error": error, "error_description": description}, status=status, headers=headers)


def _refusal(request: HttpRequest) -> HttpResponse | None:
    """Return the error response to an invalid form, or None."""
    if len(request.body) > MAX_BODY_BYTES:
        return oauth_error("invalid_request", f"A request has at most {MAX_BODY_BYTES} bytes.", status=413)
    if request.headers.get("authorization", "").lower().startswith("basic"):
        return oauth_error("invalid_client", "Clients have no secret: send client_id in the form.", status=401)
    if request.content_type != _FORM:
        return oauth_error("invalid_request", f"Send a form with Content-Type: {_FORM}.", status=415)
    try:
        form = request.POST
    except (BadRequest, SuspiciousOperation):
        return oauth_error("invalid_request", "The form cannot be read: send it in UTF-8, with fewer fields.")
    if any("\x00" in value for values in form.lists() for value in (values[0], *values[1])):
        return oauth_error("invalid_request", "A value contains a NUL character.")
    return None


def token_answer(request: HttpRequest) -> HttpResponse:
    """Return the token endpoint's answer. Synchronous; uses the database."""
    try:
        _, headers, body, status = get_oauthlib_core().create_token_response(request)
    except Grant.DoesNotExist:  # a concurrent request used the code between two queries of the library
        return oauth_error("invalid_grant", "The code was used.")
    return HttpResponse(body or "{}", status=status, headers={"Content-Type": "application/json", **headers})


def _revoke(request: HttpRequest) -> HttpResponse:
    application = Application.objects.filter(client_id=request.POST.get("client_id", "")).first()
    if application is None:
        return oauth_error("invalid_client", "There is no such client.", status=401)
    plain = request.POST.get("token", "")
    if not plain:
        return oauth_error("invalid_request", "token is missing.")
    key = connection_of_token(plain, application)
    if key is not None:
        app_disconnect(key, by=Actor(str(key.owner), f"key:{key.pk}"))
    return HttpResponse(status=200)


@require_safe
async def protected_resource(request: HttpRequest) -> HttpResponse:
    """`/.well-known/oauth-protected-resource`, also with `/mcp` appended."""
    document = {
        "resource": resource_of(request),
        "authorization_servers": [public_origin(request)],
        "scopes_supported": [*SCOPES],
        "bearer_methods_supported": ["header"],
        "resource_name": "Daybook",
    }
    return JsonResponse(document)


@require_safe
async def authorization_server(request: HttpRequest) -> HttpResponse:
    """`/.well-known/oauth-authorization-server`"""
    issuer = public_origin(request)
    document = {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}{AUTHORIZE_PATH}",
        "token_endpoint": f"{issuer}/oauth/token",
        "registration_endpoint": f"{issuer}/oauth/register",
        "revocation_endpoint": f"{issuer}/oauth/revoke",
        "scopes_supported": [*SCOPES],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": False,
    }
    return JsonResponse(document)
