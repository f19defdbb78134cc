"""Web pages of trusted origins use the APIs; all others, and all other addresses, are left to the browser's rules."""

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
def trusted(settings: Settings) -> None:
    settings.TRUSTED_ORIGINS = settings.CORS_ALLOWED_ORIGINS = [TRUSTED]


async def asked(api: Api, path: str, origin: str = TRUSTED) -> Any:
    """The answer to what a browser asks before it sends a page's request."""
    api.headers = {}
    wanted = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
    return await api.raw("OPTIONS", path, origin=origin, **wanted)


@pytest.mark.parametrize("path", PATHS)
async def test_a_trusted_page_may_ask_without_a_key(alice_api: Api, path: str) -> None:
    answer = await asked(alice_api, path)
    assert answer.status_code == 200
    assert answer["access-control-allow-origin"] == TRUSTED
    allowed = answer["access-control-allow-headers"].split(", ")
    assert {"authorization", "content-type", "x-daybook-session", "x-stainless-retry-count"} <= set(allowed)
    assert "POST" in answer["access-control-allow-methods"]
    assert "access-control-allow-credentials" not in answer


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("origin", ["https://evil.example", "null", "https://app.example.org.evil.example"])
async def test_another_page_may_not(alice_api: Api, path: str, origin: str) -> None:
    answer = await asked(alice_api, path, origin)
    assert "access-control-allow-origin" not in answer


@pytest.mark.parametrize("path", ["/", "/memories/", "/admin/", "/login/", "/oauth/authorize"])
async def test_pages_are_nobody_elses(alice: Owner, alice_api: Api, path: str) -> None:
    assert "access-control-allow-origin" not in await asked(alice_api, path)


async def test_the_answer_can_be_read_and_so_can_an_error(alice_api: Api) -> None:
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
async def test_a_refusal_before_a_request_is_read_can_be_read(path: str, headers: dict[str, str], status: int) -> None:
    """A browser shows its page nothing of an answer without this header: no app could find out where to sign in."""
    http = httpx2.ASGITransport(app=application)
    async with httpx2.AsyncClient(transport=http, base_url="http://testserver") as client:
        answer = await client.post(path, content=b"{}", headers={"origin": TRUSTED, **headers})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (status, TRUSTED)
        other = await client.post(path, content=b"{}", headers={"origin": "https://evil.example", **headers})
        assert "access-control-allow-origin" not in other.headers
