"""How many pages with a person's conversation are built at once"""

import threading

import pytest
from django.test import Client

from gateway.limits import transcript_pages
from gateway.limits.transcript_pages import transcript_page
from gateway.models import Agent
from gateway.services import session_create
from memories.errors import Overloaded
from memories.models import Owner
from tests.waiting import eventually

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def one_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript_pages, "TRANSCRIPTS", 1)


def test_a_page_is_refused_while_too_many_are_built(
    alice: Owner, charlie: Owner, agent: Agent, page: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript_pages, "WAIT_SECONDS", 0.0)
    page.raise_request_exception = False
    session = session_create(owner=alice, agent=agent)
    for path in ("/", f"/c/{session.pk}/", f"/fragments/turns/{session.pk}/"):
        with transcript_page(charlie.pk):
            assert page.get(path).status_code == 200, path
        with transcript_page(alice.pk):
            refused = page.get(path)
        assert (refused.status_code, refused["Retry-After"]) == (503, "5"), path
        assert page.get("/new/").status_code == 200  # has no conversation
        assert page.get(path).status_code == 200


def test_a_page_waits_for_another_one(alice: Owner) -> None:
    built = threading.Event()

    def build() -> None:
        with transcript_page(alice.pk):
            built.set()

    waiting = threading.Thread(target=build)
    with transcript_page(alice.pk):
        waiting.start()
        eventually(lambda: transcript_pages._waiting[alice.pk] == 1, within=10)
        assert not built.is_set()
    waiting.join(10)
    assert built.is_set()
    assert (transcript_pages._open, transcript_pages._waiting) == ({}, {})


def test_few_pages_wait(alice: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript_pages, "TRANSCRIPTS_WAITING", 0)
    with pytest.raises(Overloaded), transcript_page(alice.pk):
        pytest.fail("it did not wait for its turn")
