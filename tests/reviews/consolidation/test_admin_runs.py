"""/admin/: consolidation runs, extractions, leases, and starting a run from the list of books"""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from gateway import jobs
from memories.models import Artifact, AuditEntry, Book, Lease, Owner
from memories.services import book_get_or_create
from reviews.admin.consolidation_books import MAX_BOOKS
from reviews.consolidation import runs
from reviews.consolidation.requests import Trigger
from reviews.models import ConsolidationRun, Extraction
from tests.admin_pages import count_queries
from tests.admin_rows import bob as actor_of_bob
from tests.admin_rows import listed, object_action, owner_make, row_url, staff_client
from tests.reviews.consolidation.answering_model import AnsweringModel, extraction
from tests.reviews.consolidation.rows import book_of, consolidate, document, request, run_slice, settings_make, talk

pytestmark = pytest.mark.usefixtures("consolidation_on")
RUNS = "/admin/reviews/consolidationrun/"
NOTES = "/admin/reviews/extraction/"
LEASES = "/admin/memories/lease/"
BOOKS = "/admin/memories/book/"
START = "/admin/memories/book/consolidate/"


def text_of(client: Client, path: str, **query: Any) -> str:
    answer = client.get(path, query)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_the_list_shows_the_progress_of_each_run(root: Client, alice: Owner) -> None:
    talk(alice)
    run = request(alice)
    ConsolidationRun.objects.update(selected=True, sessions_total=12, sessions_done=3, tokens=1234, requests=4)
    page = text_of(root, RUNS)
    assert all(word in page for word in ("Scheduled", "On request", "Reading sessions", "3 of 12", "1,234", "alice"))
    assert f'href="{row_url(run)}' in page


def test_runs_are_filtered_by_state_phase_trigger_owner_book_and_id(
    root: Client, alice: Owner, charlie: Owner, answering: AnsweringModel
) -> None:
    talk(alice)
    talk(charlie)
    done = consolidate(alice)
    waiting = request(charlie, trigger=Trigger.SCHEDULE)
    assert listed(root, RUNS, state="completed") == [done]
    assert listed(root, RUNS, phase="extraction") == [waiting]
    assert listed(root, RUNS, trigger="schedule") == [waiting]
    assert listed(root, RUNS, owner__id__exact=str(alice.pk)) == [done]
    assert listed(root, RUNS, book__id__exact=str(waiting.book_id)) == [waiting]
    assert listed(root, RUNS, q=str(done.pk)) == [done]


def test_the_page_of_an_open_run_polls_its_progress_until_it_ends(
    root: Client, alice: Owner, answering: AnsweringModel
) -> None:
    settings_make(max_tokens_per_run=5000, max_requests_per_run=7)
    talk(alice)
    run = request(alice)
    ConsolidationRun.objects.update(selected=True, sessions_total=12, sessions_done=3, tokens=1234, requests=4)
    progress = reverse("admin:reviews_consolidationrun_progress", args=[run.pk])
    page = text_of(root, row_url(run))
    assert 'max="12" value="3"' in page
    assert "1,234 of at most 5,000" in page
    assert "4 of at most 7" in page
    assert f'hx-get="{progress}"' in page
    assert "HX-Refresh" not in root.get(progress).headers
    runs.cancel(run, "Stopped by a person.")
    answer = root.get(progress)
    assert answer.headers["HX-Refresh"] == "true"
    assert "hx-get" not in answer.content.decode()


@pytest.mark.any_database
def test_a_finished_run_shows_its_extractions_and_documents(
    root: Client, alice: Owner, answering: AnsweringModel
) -> None:
    settings_make(max_retries=0)
    good, bad = talk(alice, title="About ships"), talk(alice, title="About rain")
    answering.on_extraction = lambda session, _: (
        extraction("- Ships.", "Deploys by ship.") if session == str(good.pk) else "no JSON"
    )
    run = consolidate(alice)
    page = text_of(root, row_url(run))
    assert all(
        word in page for word in ("About ships", "Deploys by ship.", "Extracted", "MEMORY.md", str(run.change_set))
    )
    assert "About rain" in page
    assert "answer is not a JSON object" in page
    assert row_url(bad) in page


def test_a_failed_run_shows_its_error(root: Client, alice: Owner) -> None:
    talk(alice)
    run = request(alice)
    ConsolidationRun.objects.update(state="failed", error={"code": "upstream_error", "message": "The key is wrong."})
    assert "It failed. The key is wrong. What was done is kept." in text_of(root, row_url(run))


def test_a_run_can_be_stopped_or_undone(root: Client, alice: Owner, answering: AnsweringModel) -> None:
    talk(alice)
    done = consolidate(alice)
    assert document(alice, "MEMORY.md")
    answer = object_action(root, done, "undo")
    assert "2 documents were changed back" in answer.content.decode()
    assert document(alice, "MEMORY.md") == ""
    waiting = request(alice)
    assert "Stopped." in object_action(root, waiting, "stop").content.decode()
    waiting.refresh_from_db()
    assert (waiting.state, waiting.error["message"]) == ("cancelled", "Stopped by an administrator.")
    noted = set(AuditEntry.objects.filter(kind="consolidation run").values_list("action", "note"))
    assert noted >= {("undo", "Undone."), ("change", "Stop.")}


@pytest.mark.any_database
def test_a_finished_run_cannot_be_stopped(root: Client, alice: Owner, answering: AnsweringModel) -> None:
    talk(alice)
    run = consolidate(alice)
    page = text_of(root, row_url(run))
    assert 'value="stop"' not in page
    assert 'value="undo"' in page


@pytest.mark.any_database
def test_longer_lists_need_no_more_queries_and_count_nothing(root: Client, answering: AnsweringModel) -> None:
    lists = (RUNS, NOTES, "/admin/memories/artifact/", LEASES)

    def fill(number: int) -> None:
        owner = owner_make(f"owner{number}")
        talk(owner)
        consolidate(owner)
        jobs.lease_take(f"consolidation:{book_of(owner).pk}", seconds=60)

    fill(0)
    expected = {path: count_queries(root, path) for path in lists}
    for number in range(1, 6):
        fill(number)
    assert [len(listed(root, path)) for path in (RUNS, NOTES, LEASES)] == [6, 6, 6]
    assert {path: count_queries(root, path) for path in lists} == expected


def test_a_runs_page_needs_no_more_queries_for_more_sessions(
    root: Client, alice: Owner, answering: AnsweringModel
) -> None:
    talk(alice)
    single = consolidate(alice)
    expected = count_queries(root, row_url(single))
    for _ in range(6):
        talk(alice)
    many = consolidate(alice)
    assert Extraction.objects.filter(run=many).count() == 6
    assert count_queries(root, row_url(many)) == expected


def test_the_error_of_an_extraction_is_shown_as_text(root: Client, alice: Owner, answering: AnsweringModel) -> None:
    talk(alice)
    consolidate(alice)
    page = row_url(Extraction.objects.get())
    assert ">null<" not in text_of(root, page)
    Extraction.objects.update(error={"code": "upstream_error", "message": "No model answered."})
    shown = text_of(root, page)
    assert "No model answered." in shown
    assert "upstream_error" not in shown


def test_extractions_are_shown_read_only(root: Client, alice: Owner, answering: AnsweringModel) -> None:
    session = talk(alice, title="About ships")
    consolidate(alice)
    note = Extraction.objects.get()
    page = row_url(note)
    assert f"Synopsis of {session.pk}." in text_of(root, NOTES)
    assert f"- Note of {session.pk}" in text_of(root, page)
    assert listed(root, NOTES, session=str(session.pk)) == [note]
    assert listed(root, NOTES, state="failed") == []
    assert root.post(page, {"synopsis": "Other."}).status_code == 403


def test_an_extraction_says_in_words_which_messages_were_read_and_cleared(
    root: Client, alice: Owner, answering: AnsweringModel
) -> None:
    talk(alice)
    consolidate(alice)
    note = Extraction.objects.get()
    page = row_url(note)
    shown = text_of(root, page)
    assert f"Messages 1 to {note.through_seq} of the session" in shown
    assert "None were cleared" in shown
    Extraction.objects.update(floor_seq=1)
    assert "Message 1 of the session was cleared" in text_of(root, page)
    Extraction.objects.update(through_seq=6, floor_seq=4)
    shown = text_of(root, page)
    assert "Messages 1 to 6 of the session" in shown
    assert "Messages 1 to 4 of the session were cleared" in shown
    Extraction.objects.update(through_seq=0, floor_seq=0)
    assert "None yet" in text_of(root, page)


def test_leases_are_shown_and_filtered_by_overdue(root: Client, alice: Owner) -> None:
    talk(alice)
    claim = runs.claim(request(alice).pk)
    assert claim is not None
    lease = Lease.objects.get()
    page = text_of(root, LEASES)
    assert all(word in page for word in ("Consolidation", lease.holder, "Held"))
    assert listed(root, LEASES, state="overdue") == []
    Lease.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert listed(root, LEASES, state="overdue") == [lease]
    assert "Overdue" in text_of(root, LEASES)
    assert root.post(row_url(lease), {"holder": "me"}).status_code == 403
    assert lease.name in text_of(root, row_url(lease))


@pytest.mark.any_database
def test_starting_a_run_first_shows_its_sessions_and_cost(
    root: Client, alice: Owner, answering: AnsweringModel
) -> None:
    talk(alice, title="About ships")
    book = book_of(alice)
    page = text_of(root, row_url(book))
    assert "Consolidation has not run yet." in page
    assert f"{START}?book={book.pk}" in page
    preview = text_of(root, START, book=str(book.pk))
    assert "About ships: about" in preview
    assert "2 of at most 200" in preview
    assert "tokens" in preview
    assert "no price is known" in preview
    assert not ConsolidationRun.objects.exists()
    assert answering.calls == []


def test_a_started_run_names_the_administrator(root: Client, alice: Owner, answering: AnsweringModel) -> None:
    talk(alice)
    book = book_of(alice)
    answer = root.post(START, {"book": str(book.pk)})
    run = ConsolidationRun.objects.get()
    assert (answer.status_code, answer.headers["Location"]) == (302, row_url(run))
    assert (run.trigger, run.actor, run.force, run.rebuild) == ("request", actor_of_bob(), False, True)
    assert run_slice(run).state == "completed"
    root.post(START, {"book": str(book.pk), "force": "1"})
    again = ConsolidationRun.objects.exclude(pk=run.pk).get()
    run_slice(again)
    assert (again.force, len(answering.syntheses)) == (True, 2)


@pytest.mark.any_database
def test_a_forced_run_has_its_own_estimate(root: Client, alice: Owner, answering: AnsweringModel) -> None:
    talk(alice)
    consolidate(alice)
    book = str(book_of(alice).pk)
    plain, forced = text_of(root, START, book=book), text_of(root, START, book=book, force="1")
    assert "There is nothing new to read." in plain
    assert "0 of at most 200" in plain
    assert f"{START}?book={book}&amp;force=1" in plain
    assert "1 of at most 200" in forced
    assert '<input type="hidden" name="force" value="1">' in forced


@pytest.mark.any_database
def test_several_books_can_be_consolidated_from_the_list(root: Client, alice: Owner, charlie: Owner) -> None:
    books = []
    for owner in (alice, charlie):
        talk(owner)
        books.append(str(book_of(owner).pk))
    answer = root.post(BOOKS, {"action": "consolidate_books", "_selected_action": books}, follow=True)
    page = answer.content.decode()
    assert "alice" in page
    assert "charlie" in page
    assert "Total" in page
    assert not ConsolidationRun.objects.exists()
    answer = root.post(START, {"book": books})
    assert answer.headers["Location"] == RUNS
    assert {str(run.book_id) for run in ConsolidationRun.objects.all()} == set(books)


def test_the_number_of_previewed_books_is_limited(root: Client, alice: Owner) -> None:
    books = [str(book_get_or_create(alice.pk, f"book{number}").pk) for number in range(MAX_BOOKS + 1)]
    answer = root.post(BOOKS, {"action": "consolidate_books", "_selected_action": books}, follow=True)
    assert f"Choose at most {MAX_BOOKS} books at a time." in answer.content.decode()


@pytest.mark.any_database
def test_nothing_starts_while_consolidation_is_off(root: Client, alice: Owner) -> None:
    talk(alice)
    settings_make(enabled=False)
    book = str(book_of(alice).pk)
    page = text_of(root, START, book=book)
    assert "Consolidation is off" in page
    assert "Consolidate now</button>" not in page
    answer = root.post(START, {"book": book}, follow=True)
    assert "Consolidation is off." in answer.content.decode()
    assert not ConsolidationRun.objects.exists()


@pytest.mark.parametrize("given", [{}, {"book": "nonsense"}, {"book": "01890000-0000-7000-8000-000000000001"}])
def test_a_start_without_a_book_redirects_to_the_list(root: Client, given: dict[str, str]) -> None:
    assert root.get(START, given).headers["Location"] == BOOKS
    assert root.post(START, given).headers["Location"] == BOOKS


def test_an_auditor_cannot_start_or_stop_runs(alice: Owner, answering: AnsweringModel) -> None:
    auditor = staff_client(auditor=True)
    session = talk(alice, title="About ships")
    consolidate(alice)
    waiting = request(alice)
    page = text_of(auditor, row_url(waiting))
    assert 'value="stop"' not in page
    assert object_action(auditor, waiting, "stop").status_code == 403
    book = str(book_of(alice).pk)
    assert [send(START, {"book": book}).status_code for send in (auditor.get, auditor.post)] == [403, 403]
    assert "Consolidate now" not in text_of(auditor, reverse("admin:memories_book_change", args=[book]))
    assert "consolidate_books" not in text_of(auditor, BOOKS)
    done = ConsolidationRun.objects.get(state="completed")
    page = text_of(auditor, row_url(done))
    assert f"Synopsis of {session.pk}." in page
    assert row_url(session) not in page
    assert Artifact.objects.filter(deleted_at=None).exists()
    object_action(auditor, done, "undo")
    assert not Artifact.objects.filter(deleted_at=None).exists()
    assert Book.objects.count() == 1


def test_opening_runs_and_extractions_is_recorded(root: Client, alice: Owner, answering: AnsweringModel) -> None:
    talk(alice)
    run = consolidate(alice)
    root.get(row_url(run))
    root.get(row_url(Extraction.objects.get()))
    root.get(START, {"book": str(book_of(alice).pk)})
    recorded = AuditEntry.objects.filter(owner_id=str(alice.pk), action__in=("view", "list"))
    assert list(recorded.order_by("pk").values_list("action", flat=True)) == ["view", "view", "list"]
