"""Response headers: caching, the Content Security Policy and HSTS; and requests for headers only."""

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from memories.models import Owner
from tests.conftest import Api

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
