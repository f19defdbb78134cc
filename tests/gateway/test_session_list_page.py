"""The session list of the chat page, its search results, and links to found turns"""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from gateway.chat import transcript
from gateway.models import Agent, Session
from gateway.sessions.keeping import session_change, session_discard
from memories.models import Owner
from tests.factories import agent_make
from tests.gateway.test_chat_page import session_make, turn_make
from tests.pages import html_of, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def agent() -> Agent:
    return agent_make("assistant")


def listed(page: Client, query: str = "") -> str:
    return text_of(html_of(page, f"/fragments/sessions/{query}"))


def test_pinned_sessions_come_first_and_archived_ones_have_their_own_list(page: Client, alice: Owner) -> None:
    now = timezone.now()
    for name in ("Bread", "Trains", "Taxes"):
        session_make(alice, name, at=now)
    session_change(Session.objects.get(title="Trains"), pinned=True)
    assert listed(page) == "Pinned Trains More for Trains Today Taxes Bread".replace(" More for Trains", "")
    session_change(Session.objects.get(title="Bread"), archived=True)
    assert listed(page) == "Pinned Trains Today Taxes Show archived"
    assert listed(page, "?archived=1") == "Archived Today Bread Back to sessions"
    session_change(Session.objects.get(title="Bread"), archived=False)
    assert listed(page, "?archived=1") == "Archived No archived sessions. Back to sessions"


def test_pinned_sessions_are_not_repeated_on_the_next_page(page: Client, alice: Owner) -> None:
    now = timezone.now()
    for number in range(45):
        session_make(alice, f"Session {number:02}.", at=now - timedelta(seconds=number))
    session_change(Session.objects.get(title="Session 44."), pinned=True)
    first = html_of(page, "/fragments/sessions/")
    more = re.search(r'hx-get="(/fragments/sessions/[^"]+)"', first)
    assert more is not None
    second = html_of(page, more[1].replace("&amp;", "&"))
    assert re.findall(r"<span>Session (\d\d)\.</span>", first + second) == ["44", *(f"{n:02}" for n in range(44))]


def test_temporary_and_deleted_sessions_are_neither_listed_nor_opened_first(page: Client, alice: Owner) -> None:
    now = timezone.now()
    session_make(alice, "Bread", at=now - timedelta(hours=1))
    session_make(alice, "Secret", at=now, temporary=True)
    gone = session_make(alice, "Gone", at=now)
    session_discard(gone)
    assert "Secret" not in listed(page)
    assert "Gone" not in listed(page)
    assert '<h1 id="session-title">Bread</h1>' in html_of(page, "/")
    assert page.get(f"/c/{gone.pk}/").status_code == 404
    assert page.get(f"/fragments/turns/{gone.pk}/").status_code == 404


def test_a_search_shows_the_matches_and_links_to_them(page: Client, alice: Owner) -> None:
    session = session_make(alice, "Dinner")
    turn_make(session, "no <b>hazelnuts</b> please", "Noted: no hazelnuts.", at=timezone.now())
    html = html_of(page, "/fragments/sessions/?q=hazel")
    assert (
        text_of(html)
        == "Dinner assistant, Today Noted: no hazelnuts . You, Today no &lt;b&gt; hazelnuts &lt;/b&gt; please"
    )
    assert html.count("<mark>hazelnuts</mark>") == 2
    assert f'href="/c/{session.pk}/?at=2&amp;q=hazel"' in html


def test_further_matches_are_counted(page: Client, alice: Owner) -> None:
    session = session_make(alice, "Dinner")
    for _ in range(3):
        turn_make(session, "hazelnuts", "hazelnuts")
    assert "3 more messages match" in listed(page, "?q=hazelnuts")


def test_search_results_are_paged(page: Client, alice: Owner) -> None:
    for number in range(25):
        turn_make(session_make(alice, f"Session {number:02}."), "hazelnuts", "Fine.")
    first = html_of(page, "/fragments/sessions/?q=hazelnuts")
    more = re.search(r'hx-get="(/fragments/sessions/[^"]+)"', first)
    assert more is not None
    second = html_of(page, more[1].replace("&amp;", "&"))
    titles = re.findall(r"<span>(Session \d\d\.)</span>", first + second)
    assert len(titles) == len(set(titles)) == 25
    assert "hx-get" not in second


@pytest.mark.any_database
def test_a_found_turn_is_opened_with_all_later_turns(page: Client, alice: Owner) -> None:
    session = session_make(alice)
    for number in range(60):
        turn_make(session, f"question {number}.")
    html = html_of(page, f"/c/{session.pk}/?at=21&q=question")
    assert re.findall(r">question (\d+)\.</div>", html) == [str(number) for number in range(8, 60)]
    assert "Show 8 earlier turns" in html
    assert "data-last" in html
    html = html_of(page, f"/c/{session.pk}/?at=119")
    assert "Show 20 of 40 earlier turns" in html


def test_a_distant_turn_is_opened_with_a_link_to_the_newest(
    page: Client, alice: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript, "AROUND_TURNS", 40)
    session = session_make(alice)
    for number in range(40 + 30):
        turn_make(session, f"question {number}.")
    html = html_of(page, f"/c/{session.pk}/?at=21")
    assert len(re.findall(r">question (\d+)\.</div>", html)) == 40
    assert "22 later turns: go to the newest" in html
    assert "data-fill" not in html.split('id="ledger"')[1].split('id="new-text"')[0]


@pytest.mark.any_database
@pytest.mark.parametrize("at", ["", "0", "x", "-1", "9" * 30, "²"])
def test_an_invalid_position_opens_the_end(page: Client, alice: Owner, at: str) -> None:
    session = session_make(alice)
    for number in range(25):
        turn_make(session, f"question {number}.")
    html = html_of(page, f"/c/{session.pk}/?at={at}")
    assert "question 24." in html
    assert "question 0." not in html
