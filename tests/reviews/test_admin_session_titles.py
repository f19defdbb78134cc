"""/admin/: only users who may see sessions see their titles"""

import pytest
from django.test import Client

from tests.admin_pages import consolidation_make, saved_review_make
from tests.admin_rows import book_make, session_make, staff_client

pytestmark = pytest.mark.django_db
TITLE = "My doctor said"
PAGES = ("/admin/reviews/reviewrun/", "/admin/reviews/extraction/")


@pytest.fixture
def paths() -> list[str]:
    """The paths of lists and pages that mention a session."""
    session = session_make(title=TITLE, turns=1)
    review, run = saved_review_make(session, book_make()), consolidation_make(session, book_make())
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


def test_an_auditor_sees_ids(paths: list[str]) -> None:
    client = staff_client(auditor=True)
    assert [path for path in paths if shows(client, path)] == []


def test_an_auditor_cannot_search_by_title(paths: list[str]) -> None:
    client = staff_client(auditor=True)
    for path in PAGES:
        found = [client.get(path, {"q": words}).content.decode().count("db-badge") for words in ("doctor", "nothing")]
        assert found[0] == found[1], path


def test_messages_to_an_auditor_contain_ids(paths: list[str]) -> None:
    client = staff_client(auditor=True)
    key = paths[2].split("/")[4]
    answer = client.post(PAGES[0], {"action": "cancel_reviews", "_selected_action": [key]}, follow=True)
    assert (TITLE in answer.content.decode(), "Session " in answer.content.decode()) == (False, True)


@pytest.mark.any_database
def test_an_administrator_sees_titles(paths: list[str]) -> None:
    client = staff_client(superuser=True)
    assert [path for path in paths if not shows(client, path)] == []
