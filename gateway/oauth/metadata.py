"""The discovery documents: RFC 9728 (the authorization server for `/mcp`) and RFC 8414 (the endpoints and features of
that server)."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from gateway.oauth.addresses import AUTHORIZE_PATH, public_origin, resource_of
from gateway.oauth.tokens import SCOPES


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
