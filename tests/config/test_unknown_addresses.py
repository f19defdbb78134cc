"""Unknown addresses and refused forms: a page with a link back, or JSON for API clients."""

import re
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from django.test import Client
from django.urls import Resolver404, URLResolver, get_resolver, resolve

from memories.models import Owner
from tests.factories import owner_make
from tests.pages import client_of, html_of

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


def _addresses(resolver: URLResolver, prefix: str = "/") -> Iterator[str]:
    for pattern in resolver.url_patterns:
        address = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _addresses(pattern, address)
        else:
            yield address


def test_every_address_is_matched_in_linear_time() -> None:
    """Addresses are matched in the event loop, before anyone has signed in."""
    for address in _addresses(get_resolver()):
        start, *rest = re.split("<.+?>", address)
        for part in {*filter(None, rest)}:
            begun = time.process_time()
            with suppress(Resolver404):
                resolve(f"{start}a{part * (20_000 // len(part))}\n")  # fits nothing because of the line break
            assert time.process_time() - begun < 0.5, address


@pytest.mark.parametrize("path", ["/nowhere/", "/c/not-an-id/", "/memories/nothing/", "/%C3%BC/<b>/"])
def test_an_anonymous_visitor_gets_a_page_with_a_link_back(path: str) -> None:
    page = html_of(Client(), path, 404)
    assert "There is nothing here." in page
    assert '<a href="/">Go to Daybook</a>' in page
    assert "<b>" not in page


def test_a_signed_in_person_gets_the_usual_page_layout(alice: Owner) -> None:
    page = html_of(client_of(alice), "/nowhere/", 404)
    assert '<a href="/">Go to your newest session</a>' in page
    assert "topbar" in page


def test_an_unknown_admin_address(bob: Owner) -> None:
    assert "There is nothing here." in html_of(client_of(bob), "/admin/nowhere/", 404)


def test_an_admin_page_without_permission_has_a_link_back() -> None:
    page = html_of(client_of(owner_make("clerk", is_staff=True)), "/admin/gateway/session/", 403)
    assert "You do not have access to this page." in page
    assert 'Sign out and sign in with an account that has access, or <a href="/">' in page


def test_programs_get_json() -> None:
    answer = Client().get("/api/nowhere")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


def test_a_missing_static_file_has_an_empty_body() -> None:
    answer = Client().get("/static/nowhere.js")
    assert (answer.status_code, answer.content) == (404, b"")


def test_a_form_without_a_csrf_token_explains_what_to_do(bob: Owner) -> None:
    strict = Client(enforce_csrf_checks=True)
    for path in ("/login/", "/admin/login/"):
        answer = strict.post(path, {"username": "bob", "password": "x"})
        assert (answer.status_code, "reload the page" in answer.content.decode()) == (403, True)
