"""What the tests of pages share: a signed-in client, the HTML of a page, and its text."""

import re

from django.test import Client

from memories.models import Owner


def client_of(owner: Owner) -> Client:
    """A client that is signed in as the owner's user."""
    assert owner.user is not None
    client = Client()
    client.force_login(owner.user)
    return client


def html_of(client: Client, path: str, status: int = 200) -> str:
    """The HTML of a page that answers with this status."""
    response = client.get(path)
    assert response.status_code == status, path
    return response.content.decode()


def text_of(html: str) -> str:
    """The words of a page, without its markup."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())
