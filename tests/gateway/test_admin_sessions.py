"""/admin/gateway/session/ and /run/: read-only pages of conversations and turns"""

import re
from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from gateway.admin.transcript import PAGE_MESSAGES, transcript
from gateway.models import Message, Run, Session
from memories.models import AuditEntry, Owner
from tests.admin_rows import agent_make, listed, owner_make, row_url, session_make

pytestmark = pytest.mark.django_db
SESSIONS = "/admin/gateway/session/"
RUNS = "/admin/gateway/run/"


def test_the_list_shows_the_turns_since_the_last_memory_review(root: Client) -> None:
    session = session_make(title="Backups", turns=2)
    Session.objects.filter(pk=session.pk).update(turns=12, turns_since_memory_review=7)
    page = root.get(SESSIONS).content.decode()
    assert all(
        word in page for word in ("Backups", "alice", "assistant", "Active", "Turns since memory review", "7", "12")
    )


def test_sessions_are_found_by_title_id_owner_agent_and_state(root: Client) -> None:
    tea = session_make(title="Tea")
    trip = session_make(owner_make("charlie"), title="Trip")
    other = agent_make("other")
    Session.objects.filter(pk=trip.pk).update(agent=other, state="ended", temporary=True)
    assert listed(root, SESSIONS, q="tri") == [trip]
    assert listed(root, SESSIONS, q=str(tea.pk)) == [tea]
    assert listed(root, SESSIONS, owner__id__exact=str(tea.owner_id)) == [tea]
    assert listed(root, SESSIONS, agent__id__exact=str(other.pk)) == [trip]
    assert listed(root, SESSIONS, state="ended") == [trip]
    assert listed(root, SESSIONS, temporary__exact="1") == [trip]


def test_the_page_leads_to_the_runs_the_reviews_and_the_changes_of_the_session(root: Client) -> None:
    session = session_make(turns=2)
    page = root.get(row_url(session)).content.decode()
    for path in (f"{RUNS}?session=", "/admin/reviews/reviewrun/?session=", "/admin/memories/changeset/?q="):
        assert f'href="{path}{session.pk}"' in page


def test_the_page_shows_the_transcript_and_escapes_it(root: Client) -> None:
    session = session_make(turns=2)
    Message.objects.filter(session=session, seq=4).update(text="<script>alert(1)</script> & more")
    Run.objects.filter(session=session, turn=2).update(superseded=True)
    page = root.get(row_url(session)).content.decode()
    assert "Question 1" in page
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in page
    assert page.count("Superseded</span>") == 2


def test_the_page_shows_no_message_of_another_session(root: Client) -> None:
    session_make(owner_make("charlie"), turns=1)
    own = session_make(title="Mine")
    assert "Question 1" not in root.get(row_url(own)).content.decode()


def test_a_long_transcript_is_paged_with_one_query_per_page() -> None:
    session = session_make()
    Message.objects.bulk_create(
        Message(owner=session.owner, session=session, seq=seq, role="user", text=f"Line {seq}")
        for seq in range(1, PAGE_MESSAGES + 11)
    )
    with CaptureQueriesContext(connection) as queries:
        first = transcript(session)
    assert (len(first["lines"]), first["later"], len(queries)) == (PAGE_MESSAGES, PAGE_MESSAGES + 1, 1)
    rest = transcript(session, first=PAGE_MESSAGES + 1)
    assert [line["message"].seq for line in rest["lines"]] == list(range(PAGE_MESSAGES + 1, PAGE_MESSAGES + 11))
    assert rest["later"] is None
    assert [line["message"].text for line in transcript(session, first=3, last=4)["lines"]] == ["Line 3", "Line 4"]


def test_tool_calls_are_shown_with_their_arguments() -> None:
    session = session_make()
    call = {"function": {"name": "add_memory", "arguments": '{"content": "tea"}'}}
    Message.objects.create(owner=session.owner, session=session, seq=1, role="assistant", tool_calls=[call])
    assert transcript(session)["lines"][0]["calls"] == ['add_memory({"content": "tea"})']


def test_sessions_and_runs_are_read_only(root: Client) -> None:
    session = session_make(turns=1)
    run = Run.objects.get()
    assert root.post(row_url(session), {"title": "Changed"}).status_code == 403
    assert root.post(row_url(run), {"state": "failed"}).status_code == 403
    assert root.post(reverse("admin:gateway_session_delete", args=[session.pk]), {"post": "yes"}).status_code == 403
    assert root.get("/admin/gateway/session/add/").status_code == 403
    session.refresh_from_db()
    assert session.title == "Tea"


def test_runs_show_their_tokens_and_errors(root: Client) -> None:
    session = session_make(turns=2)
    Run.objects.filter(turn=2).update(
        state="failed",
        error={"code": "upstream_timeout"},
        usage={"total_tokens": 12345},
        recalled=[{"memory_id": "4", "why": "Pinned"}],
    )
    page = root.get(RUNS, {"state": "failed"}).content.decode()
    assert all(word in page for word in ("took too long to answer", "12,345", "Turn 2 of Tea"))
    assert "Turn 1 of Tea" not in page
    detail = root.get(reverse("admin:gateway_run_change", args=[Run.objects.get(turn=2).pk])).content.decode()
    assert "upstream_timeout" in detail
    assert "Pinned" in detail
    assert len(listed(root, RUNS, session=str(session.pk))) == 2
    assert listed(root, RUNS, session="nonsense") == []
    assert len(listed(root, RUNS, q="request-1")) == 1


def test_opening_somebody_elses_session_is_audited(root: Client) -> None:
    session = session_make(turns=1)
    root.get(row_url(session))
    assert AuditEntry.objects.get(action="view").object_id == str(session.pk)


def test_model_answers_are_rendered_as_markdown_and_user_messages_are_not(root: Client) -> None:
    session = session_make(turns=1)
    Message.objects.filter(role="assistant").update(text="At **02:30**.\n\n| a | b |\n|---|---|\n| 1 | 2 |")
    Message.objects.filter(role="user").update(text="When **exactly**?")
    page = root.get(row_url(session)).content.decode()
    assert "<strong>02:30</strong>" in page
    assert "<td>1</td>" in page
    assert "When **exactly**?" in page


def test_a_transcript_page_renders_a_limited_number_of_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.admin.transcript.MAX_RENDERED_CHARS", 40)
    session = session_make(turns=2)
    Message.objects.filter(role="assistant").update(text="**Twenty characters**")
    lines = transcript(session)["lines"]
    assert [bool(line["html"]) for line in lines] == [False, True, False, False]
    assert lines[-1]["message"].text == "**Twenty characters**"


def breadcrumbs(root: Client, path: str) -> list[str]:
    return re.findall(r'<(?:a|span)[^>]*db-crumb"[^>]*>(.*?)<', root.get(path).content.decode())


def test_breadcrumbs_show_the_section_the_list_and_the_name_as_it_is(root: Client) -> None:
    assert breadcrumbs(root, "/admin/memories/memory/") == ["Memory", "Memories"]
    agent = agent_make("assistant")
    assert breadcrumbs(root, row_url(agent)) == ["Gateway", "Agents", "assistant"]


def test_times_that_django_formats_look_like_all_others(root: Client) -> None:
    owner = owner_make("alice")
    Owner.objects.filter(pk=owner.pk).update(created_at=datetime(2026, 11, 3, 19, 5, tzinfo=UTC))
    assert "3 Nov 2026, 19:05" in root.get(row_url(owner)).content.decode()
