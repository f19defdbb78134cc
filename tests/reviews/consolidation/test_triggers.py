"""Automatic runs: each start reads a limited number of sessions, divided evenly between its books."""

import pytest
from django.contrib.auth.models import User
from django.db.models import F

from gateway.agents.configuration import consolidation_settings
from memories.errors import Conflict
from memories.models import Owner
from reviews.consolidation import triggers
from reviews.consolidation.requests import Trigger, consolidation_request
from reviews.consolidation.runs import recover
from reviews.consolidation.selection import due_books
from reviews.consolidation.triggers import fair_shares
from reviews.models import ConsolidationRun, ConsolidationState
from tests.factories import agent_make
from tests.reviews.consolidation.answering_model import AnsweringModel
from tests.reviews.consolidation.rows import book_of, request, run_slice, settings_make, talk
from tests.sweeps import reset_sweep_throttles

pytestmark = pytest.mark.usefixtures("consolidation_on")


@pytest.fixture
def three_books(alice: Owner) -> None:
    for name in ("one", "two", "three"):
        agent = agent_make(name, book=name)
        for number in range(3):
            talk(alice, f"Fact {number} of {name}", agent=agent, hours_ago=number + 1)


def start_and_work() -> dict[str, int]:
    """Start due runs and execute them. Return the number of sessions read per started book."""
    before = set(ConsolidationRun.objects.values_list("pk", flat=True))
    reset_sweep_throttles()
    triggers.consolidation_sweep()
    found = {}
    for run in ConsolidationRun.objects.exclude(pk__in=before).select_related("book"):
        run_slice(run)
        found[run.book.name] = run.sessions_total
    return found


@pytest.mark.parametrize(
    ("wanted", "limit", "expected"),
    [
        ([3, 3, 3], 2, [1, 1, 0]),
        ([3, 3, 3], 3, [1, 1, 1]),
        ([1, 0, 9], 6, [1, 0, 5]),
        ([2, 2], 100, [2, 2]),
        ([5], 0, [0]),
        ([], 7, []),
    ],
)
def test_a_limit_is_divided_evenly_and_used_up(wanted: list[int], limit: int, expected: list[int]) -> None:
    assert fair_shares(wanted, limit) == expected


@pytest.mark.any_database
def test_a_start_reads_a_limited_number_of_sessions_over_all_books(
    three_books: None, answering: AnsweringModel
) -> None:
    settings_make(max_rollouts_per_startup=2)
    assert sorted(start_and_work().values()) == [1, 1]
    assert len(answering.extracted) == 2


@pytest.mark.any_database
def test_a_sufficient_limit_leaves_no_sessions(three_books: None, answering: AnsweringModel) -> None:
    settings_make(max_rollouts_per_startup=9)
    assert start_and_work() == {"one": 3, "two": 3, "three": 3}
    assert start_and_work() == {}


def test_a_book_that_was_skipped_comes_first_next_time(three_books: None, answering: AnsweringModel) -> None:
    settings_make(max_rollouts_per_startup=2)
    first, second = start_and_work(), start_and_work()
    assert {"one", "two", "three"} == set(first) | set(second)
    skipped = ({"one", "two", "three"} - set(first)).pop()
    assert skipped in second


@pytest.mark.any_database
def test_a_book_with_only_documents_to_write_reads_no_sessions(
    alice: Owner, three_books: None, answering: AnsweringModel
) -> None:
    settings_make(max_rollouts_per_startup=1, synthesis_cooldown_hours=0)
    assert len(start_and_work()) == 1
    assert len(answering.extracted) == 1


def test_books_of_later_sweeps_share_the_remaining_limit(
    three_books: None, answering: AnsweringModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings_make(max_rollouts_per_startup=2)
    monkeypatch.setattr(triggers, "MAX_BOOKS", 1)
    triggers.consolidation_sweep()
    triggers.consolidation_sweep()
    triggers.consolidation_sweep()
    assert sum(run.max_sessions or 0 for run in ConsolidationRun.objects.all()) == 2


def test_a_requested_run_has_its_own_limit(alice: Owner, three_books: None, answering: AnsweringModel) -> None:
    settings_make(max_rollouts_per_startup=2)
    triggers.start_due(Trigger.STARTUP, consolidation_settings(), max_sessions=2)
    limited = ConsolidationRun.objects.select_related("book").order_by("id").first()
    assert limited is not None
    assert limited.max_sessions == 1
    joined = consolidation_request(limited.book, trigger=Trigger.REQUEST)
    assert (joined.pk, joined.max_sessions) == (limited.pk, None)
    assert run_slice(joined).sessions_total == 2


@pytest.mark.any_database
def test_due_books_are_those_with_something_to_do(alice: Owner, three_books: None, answering: AnsweringModel) -> None:
    due = due_books(consolidation_settings(), max_books=10)
    assert {book.name for book in due} == {"one", "two", "three"}


def test_books_of_an_inactive_account_are_not_due_and_their_runs_wait(
    alice: Owner, bob: Owner, answering: AnsweringModel
) -> None:
    settings_make(synthesis_cooldown_hours=0)
    for owner in (alice, bob):
        talk(owner)
    run_slice(run := request(bob))
    begun = request(alice)
    ConsolidationRun.objects.filter(pk=begun.pk).update(enqueued_at=None)
    read = answering.extracted
    talk(bob, "I moved to Ghent.")
    User.objects.update(is_active=False)
    assert (due_books(consolidation_settings(), max_books=9), recover()) == ([], 0)
    assert (run_slice(begun).state, answering.extracted) == ("scheduled", read)
    User.objects.update(is_active=True)
    assert (due_books(consolidation_settings(), max_books=9), recover()) == ([run.book], 1)
    assert run_slice(begun).state == "completed"


def test_no_consolidation_of_a_deactivated_account_is_scheduled(alice: Owner) -> None:
    talk(alice)
    User.objects.update(is_active=False)
    with pytest.raises(Conflict, match="This account is deactivated"):
        request(alice)


def test_documents_of_an_inactive_account_are_not_due(alice: Owner, answering: AnsweringModel) -> None:
    settings_make(synthesis_cooldown_hours=0)
    talk(alice)
    run_slice(request(alice))
    ConsolidationState.objects.update(changes=F("changes") + 1)
    User.objects.update(is_active=False)
    assert due_books(consolidation_settings(), max_books=9) == []
    User.objects.update(is_active=True)
    assert due_books(consolidation_settings(), max_books=9) == [book_of(alice)]
