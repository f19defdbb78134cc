"""Helpers for page tests: a signed-in client, a page's HTML and its text."""

import re

from django.test import Client

from memories.models import Owner


def client_of(owner: Owner) -> Client:
    """Return a client signed in as the owner's user."""
    assert owner.user is not None
    client = Client()
    client.force_login(owner.user)
    return client


def html_of(client: Client, path: str, status: int = 200) -> str:
    """Return the HTML of a page, which must answer with this status."""
    response = client.get(path)
    assert response.status_code == status, path
    return response.content.decode()


def text_of(html: str) -> str:
    """Return a page's text without its markup."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())
