"""The execution of a review in the worker: claim, model steps, writes, and every way it can end"""

import asyncio
import time
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import time_machine
from django.db import OperationalError, connection
from django.db.models import F
from django.utils import timezone

from gateway.errors import UpstreamRefused, UpstreamSilent, UpstreamUnreachable
from gateway.models import Session
from memories.errors import InvalidRequest, RateLimited
from memories.models import Book, ChangeSet, Memory, Notification, Owner, Revision
from memories.services import MemoryFields, book_writing
from prompts.files import prompt_file
from reviews import ending
from reviews import runner as review_runner
from reviews.claiming import ReviewClaim, review_claim
from reviews.models import ReviewRun
from reviews.services import ReviewOutcome, expire_leases, retry_delay, review_cancel, review_finish
from tests.factories import memory_make
from tests.overlapping import only_postgresql
from tests.reviews.talk import (
    DONE,
    adds,
    by_person,
    deletes,
    due_review,
    newest_review,
    reviewed_session,
    run_review,
    say,
    updates,
)
from tests.scripted_model import Hangs, ScriptedModel, calls, says
from tests.sweeps import pass_time
from tests.unsliced import session_delete

DOWN = UpstreamRefused("The model server answered with an error (500).", status=500)


# ---- writes ----


def test_a_review_saves_the_models_writes(alice: Owner, model: ScriptedModel) -> None:
    review = due_review(alice)
    model.script(adds("Is vegetarian.", "Likes tea.", category="preference", keywords=["food"]), DONE)
    done = run_review(review)
    assert (done.state, done.model, done.steps, done.attempts, done.error) == ("saved", "scripted", 2, 1, None)
    assert done.usage["total_tokens"] == 20
    assert done.prompt_sha256 == prompt_file("review").sha256
    assert [(w.action, w.before, w.after, w.state) for w in done.writes] == [
        ("add", None, "Is vegetarian.", "applied"),
        ("add", None, "Likes tea.", "applied"),
    ]
    memories = Memory.objects.order_by("number")
    assert [(m.content, m.write_origin, m.review_id, m.session_id) for m in memories] == [
        ("Is vegetarian.", "background_review", done.pk, done.session_id),
        ("Likes tea.", "background_review", done.pk, done.session_id),
    ]
    revisions = Revision.objects.select_related("change_set")
    assert {(r.change_set_id, r.change_set.review_id, r.write_origin) for r in revisions} == {
        (done.change_set, done.pk, "background_review")
    }


def test_a_review_updates_and_deletes_memories(alice: Owner, model: ScriptedModel) -> None:
    leeds, job = memory_make(alice, "Lives in Leeds."), memory_make(alice, "Works at Halvorsen.")
    review = due_review(alice)
    model.script(updates(leeds.number, "Lives in York."), deletes(job.number), DONE)
    done = run_review(review)
    assert [(w.action, w.before, w.after) for w in done.writes] == [
        ("update", "Lives in Leeds.", "Lives in York."),
        ("delete", "Works at Halvorsen.", None),
    ]
    leeds.refresh_from_db()
    job.refresh_from_db()
    assert (leeds.content, leeds.write_origin, job.deleted_at is not None) == ("Lives in York.", "user", True)


def test_several_changes_of_one_memory_are_applied_in_order(alice: Owner, model: ScriptedModel) -> None:
    review = due_review(alice)
    model.script(adds("Likes tea."), updates("new1", "Likes green tea."), updates("new1", "Likes sencha."), DONE)
    done = run_review(review)
    memory = Memory.objects.get()
    assert (memory.content, memory.version, done.state) == ("Likes sencha.", 3, "saved")


def test_a_review_without_writes_has_nothing_to_save(alice: Owner, model: ScriptedModel) -> None:
    review = due_review(alice)
    model.script(DONE)
    done = run_review(review)
    assert (done.state, done.writes, done.change_set) == ("nothing_to_save", [], None)
    assert not Notification.objects.exists()


def test_a_review_with_only_refused_writes_has_nothing_to_save(alice: Owner, model: ScriptedModel) -> None:
    review = due_review(alice, user_char_limit=5)
    model.script(adds("Too long for it."), DONE)
    done = run_review(review)
    assert (done.state, done.writes[0].state, done.writes[0].after) == ("nothing_to_save", "refused", None)
    assert "No room" in done.writes[0].reason


def test_a_review_makes_at_most_five_writes(alice: Owner, model: ScriptedModel) -> None:
    review = due_review(alice)
    model.script(adds(*(f"Fact number {n}." for n in range(9))), DONE)
    done = run_review(review)
    assert (Memory.objects.count(), Revision.objects.count()) == (5, 5)
    assert [w.state for w in done.writes] == ["applied"] * 5 + ["refused"] * 4


def test_the_write_limit_is_a_setting(alice: Owner, model: ScriptedModel) -> None:
    review = due_review(alice, memory_review_max_writes=2)
    model.script(adds("A fact.", "Another fact.", "A third fact."), DONE)
    run_review(review)
    assert Memory.objects.count() == 2


def test_the_model_has_exactly_three_tools_and_other_calls_are_dropped(alice: Owner, model: ScriptedModel) -> None:
    review = due_review(alice)
    model.script(calls(("search_memories", "{}"), ("shell", '{"command": "rm"}'), ("shell", "{}")), DONE)
    done = run_review(review)
    offered = [[tool["function"]["name"] for tool in call.tools] for call in model.calls]
    assert offered == [["add_memory", "update_memory", "delete_memory"]] * 2
    assert [m["content"] for m in model.calls[1].messages if m["role"] == "tool"] == ["", "", ""]
    assert (done.state, done.dropped_calls) == ("nothing_to_save", {"search_memories": 1, "shell": 2})


def test_a_model_that_does_not_stop_is_limited_in_steps(alice: Owner, model: ScriptedModel, settings: Any) -> None:
    settings.REVIEW_STEPS = 3
    review = due_review(alice)
    model.script(adds("A fact."), adds("A second fact."), adds("A third fact."))
    done = run_review(review)
    assert (done.state, done.steps, Memory.objects.count()) == ("saved", 3, 3)


def test_the_review_model_falls_back_to_the_agents_model(alice: Owner, model: ScriptedModel) -> None:
    review = due_review(alice, model="large", memory_review_model="")
    model.script(DONE)
    run_review(review)
    session = Session.objects.get()
    ReviewRun.objects.filter(pk=review.pk).delete()
    session.agent.settings |= {"memory_review_model": "small"}
    session.agent.version += 1
    session.agent.save()
    say(session)
    model.script(DONE)
    run_review(newest_review())
    assert [call.model for call in model.calls] == ["large", "small"]


def test_a_review_does_not_change_the_session(alice: Owner, model: ScriptedModel) -> None:
    review = due_review(alice)
    before = Session.objects.values().get()
    model.script(adds("A fact."), DONE)
    run_review(review)
    assert Session.objects.values().get() == before | {"reviewed_through": 2}


# ---- concurrent changes ----


def reflect(review: ReviewRun, model: ScriptedModel, *steps: Any) -> tuple[ReviewClaim, ReviewOutcome]:
    """Run the model of a review, without applying its writes yet."""
    claim = review_claim(review.pk)
    assert claim is not None
    attempt = review_runner.prepare(claim.review, reviewed_through=0)
    model.script(*steps)
    asyncio.run(review_runner._run_in_time(attempt, claim.deadline))
    return claim, attempt.outcome


@pytest.mark.any_database
def test_a_write_in_conflict_is_refused_and_the_rest_is_applied(alice: Owner, model: ScriptedModel) -> None:
    deleted, updated, unchanged = (memory_make(alice, text) for text in ("Likes tea.", "Likes milk.", "Likes soup."))
    review = due_review(alice)
    step = calls(
        *(
            ("update_memory", f'{{"id": {m.number}, "content": "{m.content} Really."}}')
            for m in (deleted, updated, unchanged)
        )
    )
    reflected = reflect(review, model, step, adds("Is vegetarian."), DONE)
    with book_writing(review.book, by_person(alice)) as writer:
        writer.delete(deleted.number)
        writer.update(updated.number, MemoryFields(content="Likes oat milk."))
    review_finish(*reflected)
    review.refresh_from_db()
    assert [w.state for w in review.writes] == ["refused", "refused", "applied", "applied"]
    assert "no memory" in review.writes[0].reason
    assert review.writes[1].reason == "Memory 2 was changed in the meantime."
    updated.refresh_from_db()
    assert (review.state, updated.content) == ("saved", "Likes oat milk.")


def test_a_pin_or_keywords_added_meanwhile_are_kept(alice: Owner, model: ScriptedModel) -> None:
    memory = memory_make(alice, "Likes tea.")
    review = due_review(alice)
    reflected = reflect(review, model, updates(memory.number, "Likes green tea."), DONE)
    with book_writing(review.book, by_person(alice)) as writer:
        writer.update(memory.number, MemoryFields(pinned=True, keywords=["drink"]))
    review_finish(*reflected)
    memory.refresh_from_db()
    assert (memory.content, memory.pinned, memory.keywords) == ("Likes green tea.", True, ["drink"])


def test_a_write_that_exceeds_the_budget_by_now_is_refused(alice: Owner, model: ScriptedModel) -> None:
    review = due_review(alice, user_char_limit=30)
    reflected = reflect(review, model, adds("x" * 20, "Tea."), DONE)
    memory_make(alice, "y" * 15)
    review_finish(*reflected)
    review.refresh_from_db()
    assert [(w.state, bool(w.reason)) for w in review.writes] == [("refused", True), ("applied", False)]


def test_an_update_of_a_refused_memory_is_refused_too(alice: Owner, model: ScriptedModel) -> None:
    review = due_review(alice, user_char_limit=30)
    reflected = reflect(review, model, adds("x" * 20), updates("new1", "x" * 19), DONE)
    memory_make(alice, "y" * 15)
    review_finish(*reflected)
    review.refresh_from_db()
    assert [w.reason for w in review.writes][1] == "The memory that this would change was not saved."
    assert review.state == "nothing_to_save"


def test_a_memory_saved_meanwhile_is_not_saved_twice(alice: Owner, model: ScriptedModel) -> None:
    review = due_review(alice)
    reflected = reflect(review, model, adds("Likes tea."), DONE)
    memory_make(alice, "Likes tea.")
    review_finish(*reflected)
    review.refresh_from_db()
    assert (review.state, review.writes[0].state, Memory.objects.count()) == ("nothing_to_save", "known", 1)


@pytest.mark.parametrize("approval", [False, True])
@pytest.mark.parametrize("step", [adds("Likes tea."), says(DONE)])
def test_clearing_the_book_meanwhile_cancels_a_review(
    alice: Owner, model: ScriptedModel, approval: bool, step: Any
) -> None:
    review = due_review(alice, memory_review_approval=approval)
    reflected = reflect(review, model, step, *([] if step.pieces else [DONE]))
    Book.objects.update(epoch=F("epoch") + 1)
    review_finish(*reflected)
    review.refresh_from_db()
    assert (review.state, review.error["code"], review.writes) == ("cancelled", "cancelled", [])
    assert not Memory.objects.exists()
    assert not Notification.objects.exists()


@pytest.mark.parametrize("approval", [False, True])
def test_deleting_the_session_meanwhile_cancels_a_review(alice: Owner, model: ScriptedModel, approval: bool) -> None:
    review = due_review(alice, memory_review_approval=approval)
    reflected = reflect(review, model, adds("Likes tea."), DONE)
    session_delete(Session.objects.get())
    review_finish(*reflected)
    review.refresh_from_db()
    assert (review.state, review.writes, Memory.objects.count()) == ("cancelled", [], 0)


def test_a_review_of_a_deleted_session_is_cancelled_without_a_request(alice: Owner, model: ScriptedModel) -> None:
    review = due_review(alice)
    session_delete(Session.objects.get())
    assert run_review(review).state == "cancelled"


# ---- at most once ----


def test_a_claim_has_one_winner_and_counts_the_attempt(alice: Owner) -> None:
    review = due_review(alice, memory_review_timeout=20)
    claim = review_claim(review.pk)
    assert claim is not None
    assert review_claim(review.pk) is None
    review.refresh_from_db()
    assert (review.attempts, review.lease_token) == (1, claim.review.lease_token)
    assert review.lease_expires_at - review.started_at == timedelta(seconds=30)


def test_a_review_delivered_twice_is_applied_once(alice: Owner, model: ScriptedModel) -> None:
    review = due_review(alice)
    model.script(adds("Likes tea."), DONE)
    run_review(review)
    run_review(review)
    assert (Memory.objects.count(), ChangeSet.objects.count(), len(model.calls)) == (1, 1, 2)


@pytest.mark.parametrize("approval", [False, True])
def test_a_worker_whose_lease_expired_writes_nothing(alice: Owner, model: ScriptedModel, approval: bool) -> None:
    review = due_review(alice, memory_review_approval=approval)
    reflected = reflect(review, model, adds("Likes tea."), DONE)
    ReviewRun.objects.update(lease_token=uuid4())  # a sweep gave it to another worker
    review_finish(*reflected)
    review.refresh_from_db()
    assert (review.state, Memory.objects.count(), Notification.objects.count()) == ("running", 0, 0)


def test_a_cancelled_review_writes_nothing(alice: Owner, model: ScriptedModel) -> None:
    review = due_review(alice)
    reflected = reflect(review, model, adds("Likes tea."), DONE)
    assert review_cancel(review, "Enough.")
    review_finish(*reflected)
    review.refresh_from_db()
    assert (review.state, Memory.objects.count()) == ("cancelled", 0)


def test_nothing_is_stored_if_the_end_cannot_be_stored(
    alice: Owner, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    review = due_review(alice)
    reflected = reflect(review, model, adds("Likes tea."), DONE)

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("disk full")

    monkeypatch.setattr(ending, "notify", fail)
    with pytest.raises(RuntimeError):
        review_finish(*reflected)
    review.refresh_from_db()
    assert (review.state, Memory.objects.count(), Revision.objects.count()) == ("running", 0, 0)
    assert Session.objects.get().reviewed_through == 0


def test_a_session_has_one_running_review_at_a_time(alice: Owner, model: ScriptedModel) -> None:
    session = reviewed_session(alice)
    say(session)
    first = newest_review()
    say(session, "And I live in York.")
    second = newest_review()
    reflected = reflect(first, model, DONE)
    assert review_claim(second.pk) is None
    review_finish(*reflected)
    model.script(DONE)
    assert run_review(second).state == "nothing_to_save"


def test_the_next_review_of_a_session_is_enqueued_when_one_ends(alice: Owner, model: ScriptedModel) -> None:
    session = reviewed_session(alice)
    say(session)
    first = newest_review()
    say(session, "And I live in York.")
    ReviewRun.objects.update(enqueued_at=None)
    model.script(DONE)
    run_review(first)
    assert newest_review().enqueued_at is not None


# ---- errors ----


def test_a_hanging_review_times_out_and_writes_nothing(alice: Owner, model: ScriptedModel) -> None:
    review = due_review(alice, memory_review_timeout=1)
    model.script(adds("Likes tea."), Hangs())
    done = run_review(review)
    assert (done.state, done.writes, done.error["code"]) == ("timed_out", [], "timed_out")
    assert (done.usage["total_tokens"], done.lease_token) == (10, None)
    assert not Memory.objects.exists()
    assert not Notification.objects.exists()
    assert Session.objects.get().reviewed_through == 0
    assert run_review(review).attempts == 1


def test_the_time_limit_starts_at_the_claim(alice: Owner, model: ScriptedModel) -> None:
    review = due_review(alice, memory_review_timeout=30)
    before = time.monotonic()
    claim = review_claim(review.pk)
    assert claim is not None
    assert before + 30 <= claim.deadline <= time.monotonic() + 30
    attempt = review_runner.prepare(claim.review, reviewed_through=0)
    model.script(Hangs())
    with pytest.raises(TimeoutError):  # the remaining time, not thirty seconds from now
        asyncio.run(review_runner._run_in_time(attempt, before))


@pytest.mark.parametrize(
    "error",
    [
        DOWN,
        UpstreamUnreachable("The model server could not be reached."),
        UpstreamSilent("The model server took too long to answer."),
        RateLimited("The model server is receiving too many requests. Try again later.", status=429),
    ],
)
def test_a_temporary_error_is_retried_later(alice: Owner, model: ScriptedModel, error: Exception) -> None:
    review = due_review(alice)
    model.script(error)
    waiting = run_review(review)
    assert (waiting.state, waiting.attempts, waiting.enqueued_at) == ("scheduled", 1, None)
    assert 4 < (waiting.not_before - timezone.now()).total_seconds() <= 5
    assert run_review(review).attempts == 1  # it is not due yet
    with time_machine.travel(waiting.not_before, tick=False):
        model.script(adds("Likes tea."), DONE)
        done = run_review(review)
    assert (done.state, done.attempts, done.error) == ("saved", 2, None)


@pytest.mark.parametrize(
    "error",
    [
        UpstreamRefused("The model server refused the gateway's key.", status=401),
        UpstreamRefused("The model server does not know this model.", status=404),
        InvalidRequest("The model server refused the request: too long", status=400),
    ],
)
def test_a_permanent_error_is_not_retried(alice: Owner, model: ScriptedModel, error: Any) -> None:
    review = due_review(alice)
    model.script(error)
    done = run_review(review)
    assert (done.state, done.attempts, done.error["code"]) == ("failed", 1, error.code)


def test_there_are_three_attempts_with_growing_delays(alice: Owner, model: ScriptedModel) -> None:
    review = due_review(alice)
    delays = []
    model.script(adds("Likes tea."), DOWN, DOWN, DOWN)
    moment = timezone.now()
    for _ in range(2):
        with time_machine.travel(moment, tick=False):
            row = run_review(review)
            delays.append((row.not_before - moment).total_seconds())
            moment = row.not_before
    with time_machine.travel(moment, tick=False):
        row = run_review(review)
    assert (row.state, row.attempts, delays) == ("failed", 3, [5, 30])
    assert row.usage["total_tokens"] == 10  # of the successful step
    assert not Memory.objects.exists()


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("60", 60), ("1", 5), ("100000", 3600), ("soon", 5), ("nan", 5), ("Fri, 20 Nov 2026 12:02:00 GMT", 120), ("", 5)],
)
def test_retry_after_is_limited(header: str, seconds: float) -> None:
    with time_machine.travel("2026-11-20T12:00:00Z", tick=False):
        error = RateLimited("Later.", status=429, retry_after=header)
        assert retry_delay(error, 1) == seconds


def test_an_unexpected_exception_fails_the_review_and_not_the_worker(
    alice: Owner, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    review = due_review(alice)

    def fail(*_: Any, **__: Any) -> None:
        raise KeyError("secret words")

    monkeypatch.setattr(review_runner, "prepare", fail)
    done = run_review(review)
    assert (done.state, done.error["code"]) == ("failed", "internal_error")
    assert "secret words" not in done.error["message"]
    assert "review" in caplog.text


@only_postgresql
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "failure", ["SELECT pg_sleep(30)", "SELECT pg_terminate_backend(pg_backend_pid())"], ids=["time limit", "lost"]
)
def test_a_review_that_the_database_interrupts_is_retried(
    alice: Owner, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    review = due_review(alice)

    def fail(*_: Any, **__: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = 100")
            cursor.execute(failure)

    with monkeypatch.context() as patch:
        patch.setattr(review_runner, "prepare", fail)
        waiting = run_review(review)
    connection.close()
    assert (waiting.state, waiting.error["code"], waiting.lease_token) == ("scheduled", "overloaded", None)
    with time_machine.travel(waiting.not_before, tick=False):
        model.script(adds("Likes tea."), DONE)
        assert run_review(review).state == "saved"


def test_a_review_whose_commit_was_not_confirmed_is_not_repeated(
    alice: Owner, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    review = due_review(alice)

    def finish(claim: ReviewClaim, outcome: ReviewOutcome) -> None:
        review_finish(claim, outcome)
        raise OperationalError from psycopg.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr("reviews.services.review_finish", finish)
    model.script(adds("Likes tea."), DONE)
    done = run_review(review)
    assert (done.state, done.error, done.attempts) == ("saved", None, 1)
    assert run_review(review).attempts == 1
    assert [memory.content for memory in Memory.objects.all()] == ["Likes tea."]


def test_a_dead_workers_review_is_retried_until_its_attempts_are_used_up(alice: Owner) -> None:
    review = due_review(alice, memory_review_timeout=30)
    seen = []
    with time_machine.travel(timezone.now(), tick=False) as clock:
        for _ in range(3):
            assert review_claim(review.pk) is not None
            pass_time(clock, timedelta(seconds=39))
            assert expire_leases(timezone.now()) == 0
            pass_time(clock, timedelta(seconds=2))
            assert expire_leases(timezone.now()) == 1
            review.refresh_from_db()
            seen.append(review.state)
    assert seen == ["scheduled", "scheduled", "failed"]
    assert (review.error["code"], review.lease_token, review.attempts) == ("worker_lost", None, 3)


def test_the_number_of_attempts_is_a_setting(alice: Owner, model: ScriptedModel, settings: Any) -> None:
    settings.REVIEW_ATTEMPTS = 1
    review = due_review(alice)
    model.script(DOWN)
    assert run_review(review).state == "failed"


def test_turns_continue_while_a_review_hangs(alice: Owner, model: ScriptedModel) -> None:
    session = reviewed_session(alice)
    say(session)
    assert review_claim(newest_review().pk) is not None  # a worker has claimed it, and its model hangs
    for number in range(3):
        assert say(session, f"Message {number}").state == "completed"
    assert ReviewRun.objects.filter(state="scheduled").count() == 3
