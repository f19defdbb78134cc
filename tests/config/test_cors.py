"""CORS: trusted origins may use the APIs; nothing is allowed for other origins or other addresses."""

from typing import Any

import httpx2
import pytest
from pytest_django.fixtures import Settings

from config.asgi import application
from memories.database.access import in_thread
from memories.models import Owner
from tests.conftest import Api
from tests.factories import agent_make

pytestmark = pytest.mark.any_database

TRUSTED = "https://app.example.org"
PATHS = [
    "/api/memories",
    "/v1/chat/completions",
    "/mcp",
    "/.well-known/oauth-authorization-server",
    "/oauth/register",
    "/oauth/token",
]


@pytest.fixture(autouse=True)
def trusted_origin(settings: Settings) -> None:
    settings.TRUSTED_ORIGINS = settings.CORS_ALLOWED_ORIGINS = [TRUSTED]


async def preflight(api: Api, path: str, origin: str = TRUSTED) -> Any:
    """Send the preflight request that a browser sends before a page's request."""
    api.headers = {}
    headers = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
    return await api.raw("OPTIONS", path, origin=origin, **headers)


@pytest.mark.parametrize("path", PATHS)
async def test_a_preflight_request_from_a_trusted_origin_needs_no_key(alice_api: Api, path: str) -> None:
    answer = await preflight(alice_api, path)
    assert answer.status_code == 200
    assert answer["access-control-allow-origin"] == TRUSTED
    allowed = answer["access-control-allow-headers"].split(", ")
    assert {"authorization", "content-type", "x-daybook-session", "x-stainless-retry-count"} <= set(allowed)
    assert "POST" in answer["access-control-allow-methods"]
    assert "access-control-allow-credentials" not in answer


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("origin", ["https://evil.example", "null", "https://app.example.org.evil.example"])
async def test_a_preflight_request_from_another_origin_is_not_allowed(alice_api: Api, path: str, origin: str) -> None:
    answer = await preflight(alice_api, path, origin)
    assert "access-control-allow-origin" not in answer


@pytest.mark.parametrize("path", ["/", "/memories/", "/admin/", "/login/", "/oauth/authorize"])
async def test_pages_allow_no_other_origin(alice: Owner, alice_api: Api, path: str) -> None:
    assert "access-control-allow-origin" not in await preflight(alice_api, path)


async def test_trusted_origins_can_read_responses_and_errors(alice_api: Api) -> None:
    await in_thread(agent_make)
    for path, status in (("/v1/models", 200), ("/api/memories/999", 404), ("/api/nothing", 404), ("/mcp", 405)):
        answer = await alice_api.raw("GET", path, origin=TRUSTED)
        assert (answer.status_code, answer["access-control-allow-origin"]) == (status, TRUSTED)
        assert "x-request-id" in answer["access-control-expose-headers"]


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/mcp", {}, 401),
        ("/v1/responses", {}, 401),
        ("/api/memories", {"authorization": "Bearer dbk_any", "content-length": "999999999"}, 413),
        ("/oauth/token", {"content-length": "999999999"}, 413),
        ("/v1/models", {"host": "elsewhere.example", "authorization": "Bearer dbk_any"}, 400),
    ],
)
async def test_trusted_origins_can_read_early_refusals(path: str, headers: dict[str, str], status: int) -> None:
    """Without this header a browser hides the response from the page, so an app could not find out where to sign in."""
    http = httpx2.ASGITransport(app=application)
    async with httpx2.AsyncClient(transport=http, base_url="http://testserver") as client:
        answer = await client.post(path, content=b"{}", headers={"origin": TRUSTED, **headers})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (status, TRUSTED)
        other = await client.post(path, content=b"{}", headers={"origin": "https://evil.example", **headers})
        assert "access-control-allow-origin" not in other.headers
