"""Response headers: caching, the Content Security Policy and HSTS; and requests for headers only."""

import asyncio
from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from config.serving.asgi_handler import HttpApplication
from memories.database.access import in_thread
from memories.models import Owner
from tests.conftest import Api
from tests.factories import key_make

pytestmark = pytest.mark.any_database


@pytest.mark.parametrize("path", ["/api/memories", "/api/sessions", "/v1/models", "/api/export", "/api/nothing-here"])
async def test_api_responses_are_not_cached(alice_api: Api, path: str) -> None:
    assert (await alice_api.raw("GET", path))["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", ["/", "/memories/", "/reviews/", "/account/"])
def test_a_page_answers_head_requests(page: Client, path: str) -> None:
    """Monitors that watch a site send HEAD."""
    assert page.head(path).status_code == 200
    assert page.head(path).content == b""
    assert Client().head(path).status_code == 302


@pytest.mark.parametrize("path", ["/api/memories", "/v1/models", "/api/openapi.json", "/healthz", "/api/nothing-here"])
async def test_an_api_address_answers_head_requests(alice_api: Api, path: str) -> None:
    whole, head = await alice_api.raw("GET", path), await alice_api.raw("HEAD", path)
    assert (head.status_code, head.content) == (whole.status_code, b"")
    assert head["Content-Length"] == str(len(whole.content))


@pytest.mark.parametrize("path", ["/api/memories/search", "/v1/chat/completions"])
async def test_an_address_without_get_does_not_answer_head_requests(alice_api: Api, path: str) -> None:
    response = await alice_api.raw("HEAD", path)
    assert (response.status_code, response["Allow"], response.content) == (405, "POST", b"")


async def test_a_head_request_for_a_stream_sends_nothing_of_it(alice: Owner) -> None:
    plain = (await in_thread(key_make, alice))[1]
    application, sent = HttpApplication(), []
    scope = {
        "type": "http",
        "method": "HEAD",
        "path": "/api/export",
        "query_string": b"",
        "headers": [(b"host", b"testserver"), (b"authorization", f"Bearer {plain}".encode())],
    }

    async def send(message: Any) -> None:
        sent.append(message)

    await application(scope, asyncio.Event().wait, send)
    assert [message.get("status") or message["body"] for message in sent] == [200, b""]


@pytest.mark.django_db
def test_the_api_docs_load_only_our_own_files() -> None:
    response = Client().get("/api/docs")
    assert response.status_code == 200
    policy = response["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert response["X-Frame-Options"] == "DENY"


@pytest.mark.django_db
def test_hsts_is_sent_if_cookies_are_secure(settings: Settings, alice: Owner) -> None:
    settings.SECURE_HSTS_SECONDS = 31_536_000
    assert "max-age=31536000" in Client().get("/login/", secure=True)["Strict-Transport-Security"]
