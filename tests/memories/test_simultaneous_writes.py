"""Writes to a book by several processes at the same time, each with its own database connection"""

import json
from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest

from gateway.agents.configuration import consolidation_settings
from gateway.agents.file import parse
from gateway.errors import RunSuperseded
from gateway.models import Message, Run, Session, UsageDay
from gateway.runs import closing
from gateway.runs.context import RunOutput, TurnContext
from gateway.runs.native import open_native
from gateway.services import agents_apply
from memories.books import book_state
from memories.errors import DomainError
from memories.ids import uuid7
from memories.messaging import invalidation
from memories.models import ChangeSet, Evidence, EvidenceKind, Memory, Owner, Revision, Target
from memories.services import MemoryFields, book_get_or_create, book_limits, book_writing
from memories.tools import ToolCall, ToolScope, run_calls
from memories.tools.tool import ToolResults
from tests.factories import BY_HAND, agent_make, caller_make, session_make
from tests.overlapping import only_postgresql, overlap
from tests.unsliced import forget_owner, import_file, session_delete, undo_changes

pytestmark = [pytest.mark.django_db(transaction=True), only_postgresql]


def test_a_write_does_not_restore_the_quote_of_a_session_that_is_deleted(alice: Owner, session: Session) -> None:
    quoted = Evidence(kind=EvidenceKind.OWN_WORDS, quote="I drink tea.", session_id=session.pk)
    book = book_get_or_create(alice.pk, "main")
    with book_writing(book, BY_HAND) as writer:
        memory = writer.add(MemoryFields(content="Likes tea.", target="user", evidence=quoted)).memory

    def pin() -> None:
        with book_writing(book, BY_HAND) as writer:
            writer.update(memory.number, MemoryFields(pinned=True))

    overlap(pin, lambda: session_delete(session), pause_after="SELECT memories_memory")
    assert Memory.objects.get().pinned
    assert [row.evidence.quote for row in (*Memory.objects.all(), *Revision.objects.all())] == ["", "", ""]


def test_a_step_does_not_write_to_a_change_set_that_is_undone_at_that_moment(alice: Owner) -> None:
    book_get_or_create(alice.pk, "main")
    scope = ToolScope(book=book_state(alice.pk, "main"), search="ranked", session_id=None, run_id=uuid7())

    def step(content: str) -> ToolResults:
        return run_calls([ToolCall(id="c", name="add_memory", arguments=json.dumps({"content": content}))], scope)

    before = step("Likes tea.").changes[0]["change_set"]
    undone, written = overlap(
        lambda: undo_changes(ChangeSet.objects.get(), BY_HAND),
        lambda: step("Likes rum."),
        pause_after="memories_book UPDATE",
    )
    assert len(undone.undone) == 1
    assert written.changes[0]["change_set"] != before


def test_conversations_that_are_imported_into_two_books_at_once_are_stored_once(alice: Owner) -> None:
    for book in ("main", "work"):
        agent_make(book, book=book)
    message = {"id": "m", "author": {"role": "user"}, "content": {"content_type": "text", "parts": ["I drink tea."]}}
    node: dict[str, Any] = {"id": "m", "message": message, "parent": None, "children": []}
    data = json.dumps([{"id": "c", "title": "Tea", "create_time": 1.0, "current_node": "m", "mapping": {"m": node}}])
    first, second = overlap(
        lambda: import_file(alice.pk, data.encode(), book="main"),
        lambda: import_file(alice.pk, data.encode(), book="work"),
        pause_after="INSERT gateway_session",
    )
    assert (first.conversations_new, second.conversations_new) == (1, 0)
    assert Session.objects.count() == 1


def test_other_processes_notice_a_session_that_takes_long_to_delete(
    alice: Owner, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A poll passes over numbers that are older than the longest transaction that it expects."""
    monkeypatch.setattr(invalidation, "_SETTLED_SECONDS", -1.0)
    seen: list[UUID | None] = []
    cache = invalidation._Cache(forget=lambda forgotten: seen.append(forgotten.session_id))
    watcher = invalidation.Watcher()
    watcher.begin()
    other = session_make(alice, session.agent)

    def delete_another() -> None:
        session_delete(other)
        monkeypatch.setattr(invalidation, "_caches", [cache])
        watcher.poll()

    overlap(lambda: session_delete(session), delete_another, pause_after="DELETE gateway_session")
    seen.clear()
    watcher.poll()
    assert seen == [session.pk]


@pytest.mark.parametrize("known", [True, False])
def test_two_agents_of_a_book_are_saved_at_once(db: None, known: bool) -> None:
    if known:
        agent_make("first", user_char_limit=1000)
        agent_make("second", user_char_limit=1000)
    overlap(
        lambda: agent_make("first", user_char_limit=1500),
        lambda: agent_make("second", user_char_limit=9000),
        pause_after="DELETE memories_booklimits",
    )
    assert book_limits("main")[Target.USER] == 9000


def test_two_agents_files_that_are_applied_at_once_both_count(db: None) -> None:
    overlap(
        lambda: agents_apply(parse("memories: {max_rollout_age_days: 7}")),
        lambda: agents_apply(parse("memories: {min_rollout_idle_hours: 2}")),
        pause_after="SELECT gateway_configuration",
    )
    assert consolidation_settings().max_rollout_age_days == 7
    assert consolidation_settings().min_rollout_idle_hours == 2


def turn_begin(session: Session) -> TurnContext:
    caller = caller_make(session.owner)
    return open_native(caller, session_id=session.pk, content="Hi", replaces=None, request_id="r")


def turn_end(context: TurnContext) -> None:
    output = RunOutput(text="Fine.", messages=[{"role": "assistant", "content": "Fine."}])
    with suppress(RunSuperseded):
        closing.close(context, output, state=Run.State.COMPLETED)


@pytest.mark.parametrize(
    "erased", ["DELETE gateway_message", "DELETE gateway_run", "DELETE gateway_session", "DELETE memories_owner"]
)
def test_a_turn_ends_while_its_owner_is_erased(alice: Owner, session: Session, erased: str) -> None:
    context = turn_begin(session)
    overlap(lambda: forget_owner(alice), lambda: turn_end(context), pause_after=erased)
    assert not any(model.objects.exists() for model in (Run, Message, UsageDay))
    assert not Owner.objects.filter(pk=alice.pk).exists()


@pytest.mark.parametrize("stored", ["UPDATE gateway_run", "INSERT gateway_message", "UPDATE gateway_session"])
def test_an_owner_is_erased_while_a_turn_ends(alice: Owner, session: Session, stored: str) -> None:
    context = turn_begin(session)
    overlap(lambda: turn_end(context), lambda: forget_owner(alice), pause_after=stored)
    assert not any(model.objects.exists() for model in (Run, Message, UsageDay))


@pytest.mark.parametrize("erased", ["DELETE gateway_run", "DELETE gateway_session", "DELETE memories_owner"])
def test_a_turn_begins_while_its_owner_is_erased(alice: Owner, session: Session, erased: str) -> None:
    turn_end(turn_begin(session))

    def begin() -> None:
        with suppress(DomainError):
            turn_begin(session)

    overlap(lambda: forget_owner(alice), begin, pause_after=erased)
    assert not any(model.objects.exists() for model in (Run, Message, Session))


@pytest.mark.parametrize("stored", ["INSERT gateway_run", "INSERT gateway_message"])
def test_an_owner_is_erased_while_a_turn_begins(alice: Owner, session: Session, stored: str) -> None:
    overlap(lambda: turn_begin(session), lambda: forget_owner(alice), pause_after=stored)
    assert not any(model.objects.exists() for model in (Run, Message, Session))
