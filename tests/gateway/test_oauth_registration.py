"""OAuth metadata, client registration, and errors for apps without a token"""

import base64
import json
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import time_machine
from django.test import AsyncClient
from django.utils import timezone
from oauth2_provider.models import Application

from gateway.models import ApiKey
from gateway.oauth import registration
from gateway.oauth.connections import app_connect
from gateway.oauth.registration import PER_MINUTE, client_register, registrations_sweep
from gateway.sweep import accounts_sweep
from memories.audit.log import SYSTEM
from memories.database.access import in_thread
from memories.models import Owner
from tests.gateway.mcp import rpc
from tests.gateway.oauth_app import CALLBACK, App
from tests.overlapping import only_postgresql, overlap

pytestmark = pytest.mark.django_db
JSON = "application/json"


@pytest.fixture(autouse=True)
def no_rates(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Lift the rate limit, since all tests use one address, except in tests of the rate."""
    if "rate" not in request.node.name:
        monkeypatch.setattr("gateway.oauth.registration.PER_MINUTE", 1_000)


async def get_json(path: str) -> tuple[int, str, Any]:
    response = await AsyncClient().get(path)
    return response.status_code, response.headers["Content-Type"], response.json()


@pytest.mark.parametrize("path", ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"])
async def test_the_resource_metadata_names_the_authorization_server(path: str) -> None:
    status, kind, document = await get_json(path)
    assert (status, kind) == (200, JSON)
    assert document["resource"] == "http://testserver/mcp"
    assert document["authorization_servers"] == ["http://testserver"]
    assert document["scopes_supported"] == ["memory:read", "memory:write"]
    assert document["bearer_methods_supported"] == ["header"]


async def test_the_server_metadata_lists_endpoints_and_capabilities() -> None:
    status, kind, document = await get_json("/.well-known/oauth-authorization-server")
    assert (status, kind) == (200, JSON)
    assert document["issuer"] == "http://testserver"
    assert document["authorization_endpoint"] == "http://testserver/oauth/authorize"
    assert document["token_endpoint"] == "http://testserver/oauth/token"
    assert document["registration_endpoint"] == "http://testserver/oauth/register"
    assert document["revocation_endpoint"] == "http://testserver/oauth/revoke"
    assert document["code_challenge_methods_supported"] == ["S256"]
    assert document["grant_types_supported"] == ["authorization_code", "refresh_token"]
    assert document["token_endpoint_auth_methods_supported"] == ["none"]
    assert document["authorization_response_iss_parameter_supported"] is True


async def test_metadata_uses_the_public_address(settings: Any) -> None:
    settings.TRUSTED_ORIGINS = ["https://other.example", "https://testserver"]
    assert (await get_json("/.well-known/oauth-protected-resource"))[2]["resource"] == "https://testserver/mcp"
    assert (await get_json("/.well-known/oauth-authorization-server"))[2]["issuer"] == "https://testserver"


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/openid-configuration",
        "/.well-known/oauth-authorization-server/mcp",
        "/.well-known/oauth-protected-resource/api",
        "/.well-known/security.txt",
        "/.well-known/",
        "/.well-known",
        "/mcp/.well-known/openid-configuration",
        "/oauth/tokens",
    ],
)
async def test_other_paths_are_not_found_with_json(path: str) -> None:
    status, kind, answer = await get_json(path)
    assert (status, kind, answer["error"]["code"]) == (404, JSON, "not_found")


@pytest.mark.parametrize("path", ["/oauth/register", "/oauth/token", "/oauth/revoke"])
async def test_endpoints_accept_post_only_and_answer_json(path: str) -> None:
    status, kind, _ = await get_json(path)
    assert (status, kind) == (405, JSON)


@pytest.mark.parametrize(
    "headers", [{}, {"authorization": "Bearer dbo_unknown"}, {"authorization": "Bearer dbk_unknown"}]
)
async def test_a_401_of_mcp_names_the_resource_metadata(headers: dict[str, str]) -> None:
    response = await AsyncClient().post("/mcp", json.dumps(rpc("ping")), content_type=JSON, headers=headers)
    assert response.status_code == 401
    header = response.headers["WWW-Authenticate"]
    assert header.startswith('Bearer resource_metadata="http://testserver/.well-known/oauth-protected-resource/mcp", ')
    assert 'scope="memory:read memory:write"' in header
    assert ('error="invalid_token"' in header) is bool(headers)


@pytest.mark.parametrize(
    "redirect",
    [
        "https://claude.ai/api/mcp/auth_callback",
        "https://chatgpt.com/connector_platform_oauth_redirect",
        "http://127.0.0.1/",
        "http://127.0.0.1:33418/",
        "http://localhost:8787/callback",
        "http://[::1]:1234/callback",
        "cursor://anysphere.cursor-mcp/oauth/callback",
        "com.example.app:/oauth2redirect",
    ],
)
async def test_redirects_of_known_apps_are_accepted(redirect: str) -> None:
    status, answer = await App().register(client_name=" Claude \u202e\n x ", redirect_uris=[redirect, redirect])
    assert status == 201
    assert answer["redirect_uris"] == [redirect]
    assert answer["client_name"] == "Claude x"
    assert answer["token_endpoint_auth_method"] == "none"
    assert answer["grant_types"] == ["authorization_code", "refresh_token"]
    assert "client_secret" not in answer
    client = await in_thread(Application.objects.get, client_id=answer["client_id"])
    assert (client.client_type, client.client_secret) == ("public", "")


@pytest.mark.parametrize(
    "redirect",
    [
        "http://claude.ai/callback",
        "http://127.0.0.1.evil.example/",
        "https://",
        "https:///callback",
        "https://claude.ai/#fragment",
        "https://user@claude.ai/",
        "https://a;script-src/",
        "https://a b/",
        "https://[::1/",
        "https://claude.ai:99999/",
        "https://claude.ai\\@evil.example/",
        "https://*.claude.ai/",
        "javascript:alert(1)",
        "data:text/html,hello",
        "file:///etc/passwd",
        "vbscript:x",
        "/callback",
        "",
        f"https://claude.ai/{'x' * 500}",
    ],
)
async def test_invalid_redirects_are_refused_and_nothing_is_registered(redirect: str) -> None:
    status, answer = await App().register(redirect_uris=[CALLBACK, redirect])
    assert (status, answer["error"]) == (400, "invalid_redirect_uri")
    assert not await in_thread(Application.objects.exists)


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ({}, "invalid_redirect_uri"),
        ({"redirect_uris": []}, "invalid_redirect_uri"),
        ({"redirect_uris": "https://claude.ai/"}, "invalid_redirect_uri"),
        ({"redirect_uris": [1]}, "invalid_redirect_uri"),
        ({"redirect_uris": [f"https://claude.ai/{number}" for number in range(11)]}, "invalid_redirect_uri"),
        ({"redirect_uris": [CALLBACK], "client_name": ["x"]}, "invalid_client_metadata"),
        ({"redirect_uris": [CALLBACK], "grant_types": ["password"]}, "invalid_client_metadata"),
        ({"redirect_uris": [CALLBACK], "grant_types": "authorization_code"}, "invalid_client_metadata"),
        ({"redirect_uris": [CALLBACK], "response_types": ["token"]}, "invalid_client_metadata"),
    ],
)
async def test_invalid_metadata_is_refused(metadata: dict[str, Any], error: str) -> None:
    status, answer = await App().register(**metadata)
    assert (status, answer["error"]) == (400, error)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"no", b"\xff", b'{"redirect_uris": ' * 200, b'{"client_name": "\\ud800"}']
)
async def test_a_body_that_is_not_an_object_is_refused(body: bytes) -> None:
    response = await AsyncClient().post("/oauth/register", body, content_type=JSON)
    assert (response.status_code, response.json()["error"]) == (400, "invalid_client_metadata")


async def test_a_large_request_is_refused() -> None:
    status, answer = await App().register(redirect_uris=[CALLBACK], client_uri="x" * 20_000)
    assert (status, answer["error"]) == (413, "invalid_client_metadata")


async def test_the_rate_limit_of_registrations_per_address() -> None:
    seen = [(await App().register(redirect_uris=[CALLBACK]))[0] for _ in range(PER_MINUTE + 1)]
    assert seen[-1] == 429
    assert await in_thread(Application.objects.count) <= PER_MINUTE


async def test_an_ipv6_network_shares_one_rate_limit(settings: Any) -> None:
    settings.DAYBOOK_TRUSTED_PROXIES = 1
    request: dict[str, Any] = {"data": {"redirect_uris": [CALLBACK]}, "content_type": "application/json"}
    for number in range(PER_MINUTE + 1):
        answer = await AsyncClient().post(
            "/oauth/register", **request, headers={"x-forwarded-for": f"2001:db8::{number}"}
        )
    assert answer.status_code == 429


def test_the_oldest_unused_registrations_are_deleted_to_make_room(
    alice: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registration, "MAX_UNUSED", 5)
    connected = client_register("Claude", [CALLBACK])
    app_connect(alice, connected, book="main", read_only=True, by=SYSTEM)
    first = client_register("first", [CALLBACK])
    for number in range(5):
        last = client_register(str(number), [CALLBACK])
    remaining = set(Application.objects.values_list("pk", flat=True))
    assert len(remaining) == 5 + 1
    assert {connected.pk, last.pk} <= remaining
    assert first.pk not in remaining


@only_postgresql
def test_a_registration_that_is_connected_at_this_moment_is_not_deleted_to_make_room(
    transactional_db: None, alice: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registration, "MAX_UNUSED", 1)
    oldest = client_register("Claude", [CALLBACK])
    overlap(
        partial(client_register, "Other", [CALLBACK]),
        partial(app_connect, alice, oldest, book="main", read_only=True, by=SYSTEM),
        pause_after="SELECT oauth2_provider_application ORDER",
    )
    assert Application.objects.filter(pk=oldest.pk).exists()
    assert ApiKey.objects.get().client_id == oldest.pk


@only_postgresql
def test_a_registration_that_is_connected_at_this_moment_is_not_swept(transactional_db: None, alice: Owner) -> None:
    app = client_register("Claude", [CALLBACK])
    overlap(
        partial(registrations_sweep, timezone.now() + timedelta(days=2)),
        partial(app_connect, alice, app, book="main", read_only=True, by=SYSTEM),
        pause_after="SELECT oauth2_provider_application LIMIT",
    )
    assert ApiKey.objects.get().client_id == app.pk


def test_unused_registrations_are_swept_after_a_day(alice: Owner) -> None:
    connected, unused = client_register("Claude", [CALLBACK]), client_register("Other", [CALLBACK])
    app_connect(alice, connected, book="main", read_only=True, by=SYSTEM)
    with time_machine.travel(timezone.now() + timedelta(hours=23)):
        accounts_sweep()
        assert Application.objects.filter(pk=unused.pk).exists()
    with time_machine.travel(timezone.now() + timedelta(hours=25)):
        accounts_sweep()
        assert list(Application.objects.all()) == [connected]


@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/revoke"])
@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        ("{}", JSON, 415),
        ("x=" + "y" * 20_000, "application/x-www-form-urlencoded", 413),
        ("client_id=a%00b&grant_type=refresh_token&refresh_token=x", "application/x-www-form-urlencoded", 400),
    ],
)
async def test_invalid_forms_are_refused(path: str, body: str, kind: str, status: int) -> None:
    response = await AsyncClient().post(path, body, content_type=kind)
    assert (response.status_code, response.json()["error"]) == (status, "invalid_request")


def basic(text: bytes) -> dict[str, str]:
    return {"authorization": f"Basic {base64.b64encode(text).decode()}"}


@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/revoke"])
@pytest.mark.parametrize(
    "headers", [{}, basic(b"a\0:b"), basic(b"\xff:\xff"), basic(b"none"), {"authorization": "Basic ="}]
)
@pytest.mark.parametrize(
    "body",
    [
        "client_id=%ED%A0%80&grant_type=refresh_token&refresh_token=%ff",
        "grant_type=authorization_code&client_id=x&code=y",
        "grant_type=authorization_code&client_id=x&client_id=z&code=y&code=z",
        "grant_type=refresh_token&refresh_token=x&client_id=y&client_secret=z",
        "x=%E0%A4%A&grant_type=authorization_code",
        f"grant_type=authorization_code&client_id={'x' * 5000}&code={'y' * 5000}",
        "token=%zz&client_id=%zz",
        "resource=http://[::1&resource=&grant_type=authorization_code&client_id=é&code=é",
    ],
)
async def test_malformed_forms_get_an_oauth_error(path: str, headers: dict[str, str], body: str) -> None:
    kind = "application/x-www-form-urlencoded"
    response = await AsyncClient().post(path, body, content_type=kind, headers=headers)
    assert response.status_code in {400, 401}
    assert (response.status_code == 401) == ("www-authenticate" in response.headers)
    assert response.json()["error"] in {
        "invalid_client", "invalid_request", "unsupported_grant_type", "invalid_grant",
    }  # fmt: skip
