"""The reviews page and its fragments, as rendered by the server. tests/browser tests their behaviour."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from gateway.models import Agent, Configuration, Message, Run, Session
from memories.artifacts.store import artifact_put
from memories.history.undo import UndoResult, change_set_get
from memories.models import Artifact, ArtifactRevision, Book, ChangeSet, Owner, WriteOrigin
from memories.services import Source
from reviews.models import ConsolidationRun, ReviewRun
from reviews.page.document import changed_lines
from tests.factories import agent_make, owner_make, session_make
from tests.pages import client_of, html_of, text_of
from tests.reviews.talk import saves
from tests.unsliced import review_undo, undo_changes

pytestmark = pytest.mark.django_db

State = ReviewRun.State


@pytest.fixture
def page(alice: Owner, agent: Agent) -> Client:
    return client_of(alice)


def session_with_turns(owner: Owner, agent: Agent, title: str = "Nightly backups", *, turns: int = 3) -> Session:
    session = session_make(owner, agent, title=title)
    for turn in range(1, turns + 1):
        run = Run.objects.create(owner=owner, session=session, turn=turn, state="completed", request_id="r")
        for place, role in enumerate(("user", "assistant")):
            Message.objects.create(
                owner=owner, session=session, run=run, seq=2 * turn - 1 + place, role=role, text="Words."
            )
    return session


def review_make(session: Session | None, book: Book, state: str = State.SAVED, **fields: Any) -> ReviewRun:
    values: dict[str, Any] = {"settings": {"memory_review_timeout": 30}, "first_seq": 1, "last_seq": 6, **fields}
    return ReviewRun.objects.create(
        owner=book.owner, book=book, session=session, state=state, agent_name="assistant", book_epoch=1, **values
    )


def write_json(
    index: int, after: str | None, *, state: str, before: str | None = None, key: str = "1"
) -> dict[str, Any]:
    action = "delete" if after is None else "update" if before else "add"
    return {
        "index": index,
        "action": action,
        "memory_id": key,
        "key": key,
        "target": "user",
        "category": "taste",
        "before": before,
        "after": after,
        "state": state,
        "reason": "",
    }


def saved_review(session: Session, book: Book, *contents: str) -> ReviewRun:
    return saves(review_make(session, book), *contents)


def by_person(owner: Owner) -> Source:
    return Source(actor=f"user:{owner.user_id}", origin=WriteOrigin.USER, kind=ChangeSet.Kind.UNDO)


def undo(review: ReviewRun, owner: Owner, *only: int) -> UndoResult:
    chosen = frozenset(only) if only else None
    undone = review_undo(review, actor=by_person(owner).actor, origin=WriteOrigin.USER, only=chosen)
    review.refresh_from_db()
    return undone


def test_the_page_redirects_to_the_sign_in_page() -> None:
    response = Client().get("/reviews/")
    assert response.status_code == 302
    assert response.headers["Location"].startswith("/login/?next=")


def test_fragments_and_actions_need_a_signed_in_user() -> None:
    for path in ("reviews/", "consolidation/", "document/?path=MEMORY.md"):
        assert Client().get(f"/fragments/{path}").status_code == 401
    assert Client().post(f"/reviews/{uuid4()}/cancel/").status_code == 401


@pytest.mark.any_database
def test_charlie_can_neither_see_nor_cancel_alices_reviews(
    alice: Owner, charlie: Owner, agent: Agent, book: Book
) -> None:
    review = saved_review(session_with_turns(alice, agent), book, "Alice keeps bees.")
    waiting = review_make(session_with_turns(alice, agent, "Alone"), book, State.SCHEDULED)
    artifact_put(book, "MEMORY.md", "Alice's notes.", Source(actor="user:1", origin=WriteOrigin.USER))
    client = client_of(charlie)
    for path in ("/reviews/", f"/fragments/reviews/?through={review.pk}", "/fragments/consolidation/"):
        html = html_of(client, path)
        assert "bees" not in html
        assert "Nightly backups" not in html
        assert "MEMORY.md" not in html
    assert client.get("/fragments/document/?path=MEMORY.md").status_code == 404
    assert "Alice" not in html_of(client, "/reviews/?doc=MEMORY.md")
    assert client.post(f"/reviews/{waiting.pk}/cancel/").status_code == 404
    waiting.refresh_from_db()
    assert waiting.state == State.SCHEDULED


def test_an_empty_timeline_explains_when_reviews_run(alice: Owner) -> None:
    agent_make(memory_review_interval=3)
    text = text_of(html_of(client_of(alice), "/reviews/"))
    assert "After every 3 turns a review reads the conversation again" in text
    assert "No reviews yet. One runs after every 3 turns." in text


def test_the_page_shows_that_reviews_are_off(page: Client) -> None:
    assert "Reviews are off for every agent." in text_of(html_of(page, "/reviews/"))


def test_a_saved_review_shows_its_writes_turns_and_undo(page: Client, alice: Owner, agent: Agent, book: Book) -> None:
    session = session_with_turns(alice, agent)
    review = saved_review(session, book, "Keeps dumps for 14 days.", "The NAS is at /mnt/nas.")
    ReviewRun.objects.update(
        model="qwen3-8b", usage={"total_tokens": 1870}, started_at=timezone.now(), first_seq=3, last_seq=6
    )
    ReviewRun.objects.update(finished_at=timezone.now() + timedelta(seconds=4))
    html = html_of(page, "/reviews/")
    text = text_of(html)
    first = Run.objects.get(session=session, turn=2)
    for words in ("Saved", "Nightly backups", "Added Keeps dumps for 14 days.", "Undo both"):
        assert words in text
    assert f'<a href="/c/{session.pk}/#turn-{first.pk}">turns 2 to 3</a> · qwen3-8b · 1,870 tokens · 4 s' in html
    assert f'id="review-{review.pk}"' in html
    ReviewRun.objects.update(proposals=1)  # a person decided, which ended it
    assert "1,870 tokens ·" not in html_of(page, "/reviews/")


def test_an_undone_review_can_be_redone(page: Client, alice: Owner, agent: Agent, book: Book) -> None:
    review = saved_review(session_with_turns(alice, agent), book, "The landlord's name is Berg.")
    undone = undo_changes(change_set_get(alice.pk, review.change_set), by_person(alice))
    html = html_of(page, "/fragments/reviews/")
    text = text_of(html)
    assert re.search(r"Undone by you, \d\d:\d\d", text)
    assert "<s>The landlord&#x27;s name is Berg.</s>" in html
    assert f'data-change="{undone.change_set}"' in html
    assert "data-undo" not in html


@pytest.mark.any_database
def test_undo_and_redo_of_a_single_write(page: Client, alice: Owner, agent: Agent, book: Book) -> None:
    review = saved_review(session_with_turns(alice, agent), book, "Has a cat.", "Likes tea.", "Likes jam.")
    assert re.findall(r'data-undo-write="(\d)"', html_of(page, "/reviews/")) == ["0", "1", "2"]
    first = undo(review, alice, 0)
    html = html_of(page, "/reviews/")
    assert re.findall(r'data-undo-write="(\d)"', html) == ["1", "2"]
    assert re.findall(r'data-change="(.+?)"', html) == [str(first.change_set)]
    assert "Undo both" in text_of(html)
    assert re.search(r"Has a cat\. Undone by you, \d\d:\d\d Restore", text_of(html))
    both = undo(review, alice)
    html = html_of(page, "/reviews/")
    assert re.findall(r'data-change="(.+?)"', html) == [str(first.change_set), str(both.change_set)]
    assert "Restore both" in text_of(html)
    assert review.state == State.UNDONE
    undo_changes(change_set_get(alice.pk, first.change_set), by_person(alice))
    html = html_of(page, "/reviews/")
    assert "<s>Has a cat.</s>" not in html
    assert re.findall(r'data-change="(.+?)"', html) == [str(both.change_set)]
    assert "data-undo" in html


def test_two_reviews_list_their_own_undone_writes(page: Client, alice: Owner, agent: Agent, book: Book) -> None:
    session = session_with_turns(alice, agent)
    reviews = [saved_review(session, book, f"Has {n} cats.", f"Has {n} dogs.") for n in (2, 3)]
    sets = [str(undo(review, alice, 1).change_set) for review in reversed(reviews)]
    assert re.findall(r'data-change="(.+?)"', html_of(page, "/reviews/")) == sets


def test_a_waiting_review_can_be_decided_write_by_write(page: Client, alice: Owner, agent: Agent, book: Book) -> None:
    writes = [
        write_json(0, "Cooks on Fridays.", state="waiting", key="new1"),
        write_json(1, "Jonas and Elin are here.", state="waiting", before="Jonas is here."),
        write_json(2, None, state="waiting", before="Has a cat."),
        write_json(3, "Too long.", state="refused"),
    ]
    review_make(session_with_turns(alice, agent), book, State.AWAITING_APPROVAL, writes=writes)
    html = html_of(page, "/reviews/")
    text = text_of(html)
    assert "1 review needs your decision." in text
    assert re.findall(r'data-write="(\d)"', html) == ["0", "1", "2"]
    assert ">Cooks on Fridays.</textarea>" in html
    assert "Edit before saving" in text
    assert "<s>Has a cat.</s>" in html
    assert "Save all 3" in text
    assert "Too long." not in text


@pytest.mark.parametrize(
    ("state", "fields", "words"),
    [
        (State.TIMED_OUT, {"attempts": 1}, "The model server took longer than 30 seconds. Nothing was saved."),
        (State.TIMED_OUT, {"attempts": 2}, "took longer than 30 seconds, twice."),
        (State.FAILED, {"error": {"code": "upstream_error"}}, "answered with an error. Nothing was"),
        (
            State.FAILED,
            {"error": {"code": "upstream_error", "message": "The model server does not know this model."}},
            "The model server does not know this model. Nothing was saved.",
        ),
        (State.FAILED, {"error": {"code": "strange", "message": "It rained."}}, "It rained. Nothing was saved."),
        (State.CANCELLED, {"error": {"code": "rejected", "message": "x"}}, "You rejected it. Nothing was saved."),
        (State.CANCELLED, {"error": {"code": "expired", "message": "Nobody decided."}}, "Nobody decided. Nothing was"),
        (State.SCHEDULED, {}, "It begins as soon as a worker is free."),
        (State.NOTHING_TO_SAVE, {}, "Nothing new"),
    ],
)
def test_every_outcome_is_described(
    page: Client, alice: Owner, agent: Agent, book: Book, state: str, fields: dict[str, Any], words: str
) -> None:
    review_make(session_with_turns(alice, agent), book, state, **fields)
    html = html_of(page, "/reviews/")
    assert words in text_of(html)
    assert ("data-again" in html) == (state in {State.FAILED, State.TIMED_OUT})
    assert ("data-cancel" in html) == (state == State.SCHEDULED)


def test_a_rejected_write_can_still_be_approved(page: Client, alice: Owner, agent: Agent, book: Book) -> None:
    writes = [write_json(0, "Likes tea.", state="rejected"), write_json(1, "Likes jam.", state="rejected")]
    review_make(
        session_with_turns(alice, agent),
        book,
        State.CANCELLED,
        writes=writes,
        error={"code": "rejected", "message": ""},
    )
    assert 'data-later="0,1"' in html_of(page, "/reviews/")


def test_a_running_review_shows_its_time_limit(page: Client, alice: Owner, agent: Agent, book: Book) -> None:
    review_make(session_with_turns(alice, agent), book, State.RUNNING, started_at=timezone.now() - timedelta(seconds=9))
    assert re.search(r"Reading 3 turns · (9|1\d) of at most 30 seconds", text_of(html_of(page, "/reviews/")))


def test_a_review_of_a_deleted_session_is_listed(page: Client, book: Book) -> None:
    review_make(None, book)
    assert "A session that was deleted" in text_of(html_of(page, "/reviews/"))


def test_a_scheduled_review_can_be_cancelled(page: Client, alice: Owner, agent: Agent, book: Book) -> None:
    review = review_make(session_with_turns(alice, agent), book, State.SCHEDULED)
    assert page.post(f"/reviews/{review.pk}/cancel/").status_code == 204
    review.refresh_from_db()
    assert (review.state, review.error) == (State.CANCELLED, {"code": "cancelled", "message": "You cancelled it."})
    assert page.get(f"/reviews/{review.pk}/cancel/").status_code == 405


def test_a_finished_review_cannot_be_cancelled(page: Client, alice: Owner, agent: Agent, book: Book) -> None:
    review = saved_review(session_with_turns(alice, agent), book, "Likes tea.")
    assert page.post(f"/reviews/{review.pk}/cancel/").status_code == 204
    review.refresh_from_db()
    assert review.state == State.SAVED


def test_days_begin_in_the_owners_time_zone(page: Client, alice: Owner, agent: Agent, book: Book) -> None:
    Owner.objects.filter(pk=alice.pk).update(time_zone="Pacific/Auckland")
    late = datetime(2026, 3, 9, 20, 0, tzinfo=UTC)  # 9 a.m. on the 10th in Auckland
    review_make(session_with_turns(alice, agent), book, created_at=late)
    html = html_of(page, "/reviews/")
    assert "Tuesday 10 March" in html
    assert ">09:00</time>" in html


def test_each_line_of_a_day_has_an_id_by_which_the_page_updates_it(page: Client, book: Book) -> None:
    for day in (9, 10, 10):
        review_make(None, book, created_at=datetime(2026, 3, day, 12, 0, tzinfo=UTC))
    found = re.findall(r'class="dayline" id="([^"]*)"', html_of(page, "/reviews/"))
    assert found == ["day-2026-03-10", "day-2026-03-09"]


def test_the_timeline_is_shown_in_parts_and_up_to_a_linked_review(page: Client, book: Book) -> None:
    reviews = [review_make(None, book, State.NOTHING_TO_SAVE) for _ in range(33)]
    html = html_of(page, "/reviews/")
    assert html.count("data-review=") == 30
    assert 'data-more="60"' in html
    assert f"review-{reviews[0].pk}" not in html
    assert f"review-{reviews[0].pk}" in html_of(page, f"/fragments/reviews/?through={reviews[0].pk}")


def test_the_number_of_queries_does_not_grow_with_the_timeline(
    page: Client, alice: Owner, agent: Agent, book: Book
) -> None:
    def fill(number: int) -> None:
        for _ in range(number):
            session = session_with_turns(alice, agent)
            number = ReviewRun.objects.count()
            undo(saved_review(session, book, f"A fact, number {number}.", f"Another, {number}."), alice, 1)

    def queries(path: str, reviews: int) -> int:
        with CaptureQueriesContext(connection) as captured:
            assert html_of(page, path).count("data-review=") == reviews
        return len(captured)

    paths = ("/reviews/", "/fragments/reviews/")
    fill(3)
    expected = {path: queries(path, 3) for path in paths}
    fill(6)
    assert {path: queries(path, 9) for path in paths} == expected
    assert max(expected.values()) <= 30


def consolidation_make(book: Book, **fields: Any) -> ConsolidationRun:
    values: dict[str, Any] = {"trigger": "request", "book_epoch": 1, "owner": book.owner, "book": book, **fields}
    return ConsolidationRun.objects.create(**values)


def turn_on(**fields: Any) -> None:
    Configuration.objects.create(section="memories", value={"enabled": True, **fields})


def test_the_page_explains_who_can_turn_consolidation_on(page: Client) -> None:
    html = html_of(page, "/reviews/")
    assert "Consolidation is off. An administrator can turn it on." in text_of(html)
    assert "data-preview" not in html


def test_an_administrator_gets_a_link_to_the_consolidation_settings(agent: Agent) -> None:
    html = html_of(client_of(owner_make("root", is_staff=True, is_superuser=True)), "/reviews/")
    address = reverse("admin:gateway_configuration_change", args=["memories"])
    assert f'<a href="{address}">Turn it on in the settings</a>' in html


def test_a_running_consolidation_shows_its_progress_and_quotas(page: Client, book: Book) -> None:
    turn_on(max_tokens_per_run=120_000)
    run = consolidation_make(
        book, state="running", selected=True, sessions_total=26, sessions_done=13, tokens=41_200, requests=13
    )
    html = html_of(page, "/fragments/consolidation/?book=main")
    text = text_of(html)
    for words in ("26 found", "13 of 26", "41,200 of at most 120,000"):
        assert words in text
    assert 'width="49.8"' in html
    assert f'data-stop="{run.pk}"' in html
    assert "Cost" not in text


def test_the_cost_is_shown_if_a_price_is_known(page: Client, book: Book, settings: Any) -> None:
    turn_on(max_tokens_per_run=100_000)
    Configuration.objects.create(section="prices", value={settings.DAYBOOK_MODEL: {"input": 1.0, "output": 2.0}})
    consolidation_make(book, state="running", selected=True, sessions_total=2, tokens=10_000, requests=1)
    # 8,000 tokens read and 2,000 written.
    assert "about $0.01 of at most $0.20" in text_of(html_of(page, "/fragments/consolidation/"))


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"state": "completed", "sessions_done": 3, "written": ["MEMORY.md"]},
            "Consolidation read 3 sessions and wrote 1 document.",
        ),
        (
            {"state": "completed", "sessions_done": 3, "sessions_failed": 2},
            "Consolidation read 1 session; the documents stay as they are. 2 sessions could not be read.",
        ),
        ({"state": "failed", "error": {"code": "x", "message": "It rained."}}, "It rained. What was done is kept."),
        ({"state": "cancelled", "error": {"code": "x", "message": "Stopped by a person."}}, "The last run was stopped"),
    ],
)
def test_the_result_of_the_last_run_is_described(page: Client, book: Book, fields: dict[str, Any], words: str) -> None:
    turn_on()
    consolidation_make(book, finished_at=timezone.now(), **fields)
    assert words in text_of(html_of(page, "/reviews/"))


def test_documents_are_listed_and_rendered_safely(page: Client, book: Book) -> None:
    source = Source(actor="model", origin=WriteOrigin.CONSOLIDATION)
    artifact_put(book, "MEMORY.md", "# Home\n\n- The **NAS**.", source)
    artifact_put(book, "skills/restore-a-dump/SKILL.md", "Stop the app.", source)
    Artifact.objects.filter(path="MEMORY.md").update(content="# Home\n\n- The **NAS**. <img src=x onerror=alert(1)>")
    html = html_of(page, "/reviews/")
    assert "MEMORY.md</a>" in html
    assert ">skills/restore-a-dump</a>" in html
    rendered = html_of(page, "/fragments/document/?book=main&path=MEMORY.md")
    assert "<strong>NAS</strong>" in rendered
    assert "<img" not in rendered
    assert "<strong>NAS</strong>" in html_of(page, "/reviews/?book=main&doc=MEMORY.md")


def test_a_document_can_be_edited_by_version_and_has_a_history(page: Client, book: Book) -> None:
    model = Source(actor="model", origin=WriteOrigin.CONSOLIDATION)
    artifact_put(book, "MEMORY.md", "# Home\n\nDumps at 02:30 daily.", model)
    artifact_put(book, "MEMORY.md", "# Home\n\nDumps at 03:15 daily.", Source(actor="user:1", origin=WriteOrigin.USER))
    path = "/fragments/document/?book=main&path=MEMORY.md"
    assert 'data-version="2"' in html_of(page, f"{path}&view=edit")
    history = html_of(page, f"{path}&view=history")
    assert "<del>02:30</del> <ins>03:15</ins>" in history
    first = ArtifactRevision.objects.get(version=1)
    assert f'data-restore-document="{first.pk}"' in history
    response = page.get(f"{path}&revision={first.pk}")
    assert response.headers["Content-Type"].startswith("text/plain")
    assert response.content.decode() == "# Home\n\nDumps at 02:30 daily."
    assert page.get(f"{path}&revision={uuid4()}").status_code == 404


def test_only_changed_lines_are_compared() -> None:
    pieces = changed_lines("a\nb one\nc", "a\nb two\nc")
    assert pieces == [(("same", "b "), ("del", "one"), ("ins", "two"))]
    assert changed_lines("", "new\n\nlines") == [(("same", "new"),), (("same", "lines"),)]
    assert changed_lines("same", "same") == []


def test_many_repeated_lines_are_shown_as_replaced_as_a_whole() -> None:
    """Comparing each line with each equal one took 45 s for these."""
    before, after = "a\nb\n" * 1_000, "b\na\n" * 1_000
    assert changed_lines(before, after) == [(("del", before.strip()), ("ins", after.strip()))]
