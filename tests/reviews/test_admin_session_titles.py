"""/admin/: titles of sessions are for those who may see sessions"""

import pytest
from django.test import Client

from tests.admin_pages import consolidation_make, review_make
from tests.admin_rows import book_make, session_make, staff_client

pytestmark = pytest.mark.django_db
TITLE = "My doctor said"
PAGES = ("/admin/reviews/reviewrun/", "/admin/reviews/extraction/")


@pytest.fixture
def addresses() -> list[str]:
    """The lists and pages that name a session."""
    session = session_make(title=TITLE, turns=1)
    review, run = review_make(session, book_make()), consolidation_make(session, book_make())
    extraction = run.extractions.get()
    return [
        *PAGES,
        f"{PAGES[0]}{review.pk}/change/",
        f"{PAGES[1]}{extraction.pk}/change/",
        f"/admin/reviews/consolidationrun/{run.pk}/change/",
    ]


def shows(client: Client, path: str) -> bool:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return TITLE in answer.content.decode()


def test_an_auditor_is_shown_ids(addresses: list[str]) -> None:
    client = staff_client(auditor=True)
    assert [path for path in addresses if shows(client, path)] == []


def test_an_auditor_does_not_find_by_title(addresses: list[str]) -> None:
    client = staff_client(auditor=True)
    for path in PAGES:
        found = [client.get(path, {"q": words}).content.decode().count("db-badge") for words in ("doctor", "nothing")]
        assert found[0] == found[1], path


def test_messages_about_reviews_name_ids_to_an_auditor(addresses: list[str]) -> None:
    client = staff_client(auditor=True)
    key = addresses[2].split("/")[4]
    answer = client.post(PAGES[0], {"action": "cancel_reviews", "_selected_action": [key]}, follow=True)
    assert (TITLE in answer.content.decode(), "Session " in answer.content.decode()) == (False, True)


def test_an_administrator_is_shown_titles(addresses: list[str]) -> None:
    client = staff_client(superuser=True)
    assert [path for path in addresses if not shows(client, path)] == []
