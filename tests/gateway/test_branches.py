"""Branches of a session: versions of a turn, and the turns that follow the shown version"""

import asyncio
from importlib import import_module
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from gateway.errors import SessionBusy
from gateway.models import Compaction, Message, Run, Session
from gateway.portability import export_conversations
from gateway.runs import branches, opening, rows
from gateway.runs.branches import LEASE, BranchLease, branches_sweep, later_hide_slices, path_to
from gateway.runs.leases import lease_end
from gateway.runs.native import open_native
from gateway.runs.rows import LaterTurnsShown
from gateway.sessions.keeping import session_discard, session_restore
from memories.database.access import in_thread
from memories.database.batches import Slices
from memories.errors import UpstreamError
from memories.models import Owner
from memories.recall.threads import thread_cache
from reviews.frozen import reviewable
from tests.conftest import Api
from tests.factories import agent_make, caller_make, session_make
from tests.gateway.client_tools import FIRST, LOOKUP
from tests.gateway.v1 import ask
from tests.scripted_model import ScriptedModel, calls
from tests.unsliced import branch_choose
from tests.waiting import eventually_async

MESSAGE: dict[str, Any] = {"content": "Hi", "replaces": None, "request_id": "r"}


@pytest.fixture
def talk(alice_api: Api, session: Session, model: ScriptedModel) -> "Talk":
    return Talk(alice_api, session, model)


async def shown_texts(session: Session) -> list[str]:
    """Return the user messages on the shown branch of a session."""
    rows = Message.objects.filter(session=session, role="user").exclude(run__superseded=True).order_by("seq")
    return await in_thread(lambda: list(rows.values_list("text", flat=True)))


class Talk:
    """Sends turns to one session through the native API."""

    def __init__(self, api: Api, session: Session, model: ScriptedModel) -> None:
        self.api, self.session, self.model = api, session, model
        self.path = f"/api/sessions/{session.pk}/turns"

    async def say(self, content: str, answer: str | Exception = "Yes.", *, replaces: str | None = None) -> str:
        """Send a turn and return its ID."""
        self.model.script(answer)
        status, turn = await self.api.post(self.path, {"content": content, "replaces": replaces})
        assert (status == 200) == isinstance(answer, str), turn
        return str(turn["id"]) if status == 200 else str((await in_thread(Run.objects.latest, "id")).pk)

    async def choose(self, turn: str) -> dict[str, Any]:
        """Show the branch of a turn and return the session."""
        status, session = await self.api.post(f"{self.path}/{turn}/choose")
        assert status == 200, session
        return dict(session)

    async def shown(self) -> list[str]:
        """Return the user messages on the shown branch."""
        return await shown_texts(self.session)

    def sent(self) -> list[str]:
        """Return the user messages of the last model call."""
        return [message["content"] for message in self.model.calls[-1].messages if message["role"] == "user"]


async def test_an_export_tells_versions_apart(talk: Talk, alice: Owner) -> None:
    first = await talk.say("Hi", "One.")
    second = await talk.say("Hi", "Two.", replaces=first)
    await talk.say("Go on", "Three.")
    await talk.api.call("PATCH", f"/api/sessions/{talk.session.pk}", {"pinned": True, "archived": True})

    def export() -> tuple[list[dict[str, Any]], list[str]]:
        with CaptureQueriesContext(connection) as queries:
            return list(export_conversations(alice.pk)), [query["sql"] for query in queries]

    lines, queries = await in_thread(export)
    assert (len(queries), [sql for sql in queries if "trace" in sql]) == (3, []), "long columns of runs are not read"
    answers = [line for line in lines if line["type"] == "message" and line["role"] == "assistant"]
    told = [(line["content"], line["superseded"], line["follows"] and str(line["follows"])) for line in answers]
    assert told == [("One.", True, None), ("Two.", False, None), ("Three.", False, second)]
    assert [(line["pinned"], line["archived"], line["turns"]) for line in lines if line["type"] == "session"] == [
        (True, True, 2)
    ]


@pytest.mark.any_database
async def test_editing_an_earlier_message_keeps_both_branches(talk: Talk) -> None:
    one = await talk.say("one")
    two = await talk.say("two")
    three = await talk.say("three")
    edited = await talk.say("zwei", replaces=two)
    assert await talk.shown() == ["one", "zwei"]
    status, refused = await talk.api.post(talk.path, {"content": "deux", "replaces": two})
    assert (status, refused["error"]["message"]) == (404, "There is no such turn in this session to replace.")
    session = await talk.choose(two)
    assert (session["turns"], await talk.shown()) == (3, ["one", "two", "three"])
    assert (await talk.choose(edited))["turns"] == 2
    await talk.say("drei")
    assert talk.sent() == ["one", "zwei", "drei"]
    await talk.choose(three)
    four = await talk.say("four")
    assert talk.sent() == ["one", "two", "three", "four"]
    _, found = await talk.api.get(f"/api/sessions/{talk.session.pk}/messages?limit=100")
    follows = {row["turn_id"]: row["follows"] for row in found["data"]}
    assert (follows[one], follows[two], follows[edited], follows[four]) == (None, one, one, three)
    assert len(found["data"]) == 12


@pytest.mark.any_database
async def test_choosing_a_version_shows_the_newest_turns_after_it(talk: Talk) -> None:
    one = await talk.say("one")
    await talk.say("two")
    eins = await talk.say("eins", replaces=one)
    await talk.say("zwei")
    await talk.choose(one)
    assert await talk.shown() == ["one", "two"]
    await talk.choose(eins)
    assert await talk.shown() == ["eins", "zwei"]


async def test_choosing_a_shown_turn_changes_nothing(talk: Talk) -> None:
    one = await talk.say("one")
    await talk.say("two")
    assert (await talk.choose(one))["turns"] == 2
    assert await talk.shown() == ["one", "two"]


async def test_a_message_after_a_failed_turn_follows_that_turn(talk: Talk) -> None:
    await talk.say("one")
    failed = await talk.say("two", UpstreamError("down"))
    three = await talk.say("three")
    edited = await talk.say("drei", replaces=three)
    assert await talk.shown() == ["one", "two", "drei"]
    rows = await in_thread(lambda: dict(Run.objects.values_list("pk", "follows")))
    named = {str(pk): str(follows) for pk, follows in rows.items()}
    assert named[three] == named[edited] == failed


async def test_a_stopped_turn_before_an_edited_one_is_sent(talk: Talk) -> None:
    await talk.say("one")
    stopped = await talk.say("two")
    await in_thread(lambda: Run.objects.filter(pk=stopped).update(state="stopped"))
    await in_thread(lambda: Session.objects.filter(pk=talk.session.pk).update(turns=1))
    three = await talk.say("three")
    await talk.say("drei", replaces=three)
    assert talk.sent() == ["one", "two", "drei"]


async def test_reviews_and_recall_read_the_shown_branch(talk: Talk, alice: Owner) -> None:
    one = await talk.say("one")
    await talk.say("two")
    eins = await talk.say("eins", replaces=one)

    async def read() -> tuple[list[str], list[str]]:
        newest = (await in_thread(lambda: alice.thread_records.latest("id"))).pk
        turns = thread_cache.known(talk.session.pk, newest)
        if turns is None:
            turns = await in_thread(thread_cache.read, alice.pk, talk.session.pk, newest)
        rows = reviewable(alice.pk, talk.session.pk).filter(role="user").order_by("seq")
        return [turn.user for turn in turns], await in_thread(lambda: list(rows.values_list("text", flat=True)))

    assert await read() == (["eins"], ["eins"])
    await talk.choose(one)
    assert await read() == (["one", "two"], ["one", "two"])
    await talk.choose(eins)
    assert await read() == (["eins"], ["eins"])


async def test_a_summary_of_another_branch_is_not_sent(talk: Talk, alice: Owner) -> None:
    one = await talk.say("one")
    await talk.say("two")

    def add_summary() -> None:
        Compaction.objects.create(owner=alice, session=talk.session, up_to=4, summary="They spoke of one and two.")
        Session.objects.filter(pk=talk.session.pk).update(compaction_epoch=1)

    await in_thread(add_summary)
    await talk.say("eins", replaces=one)
    await talk.say("zwei")
    assert talk.sent() == ["eins", "zwei"]
    assert "They spoke" not in str(talk.model.calls[-1].messages)
    await talk.choose(one)
    await talk.say("three")
    assert "They spoke" in str(talk.model.calls[-1].messages)


async def test_a_client_that_resends_everything_continues_the_shown_branch(talk: Talk) -> None:
    one = await talk.say("one", "A.")
    await talk.say("eins", "B.", replaces=one)
    await talk.choose(one)
    talk.model.script("C.")
    said = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "A."}]
    answer = await ask(talk.api, *said, {"role": "user", "content": "two"}, body={"model": talk.session.agent.name})
    assert answer.session == str(talk.session.pk)
    assert await talk.shown() == ["one", "two"]


@pytest.mark.any_database
async def test_choosing_ends_a_turn_that_waits_for_tools(talk: Talk) -> None:
    one = await talk.say("one")
    eins = await talk.say("eins", replaces=one)
    talk.model.script(calls(FIRST))
    _, waiting = await talk.api.post(talk.path, {"content": "zwei", "tools": [LOOKUP]})
    assert waiting["state"] == "awaiting_client_tools"
    session = await talk.choose(one)
    assert (session["agent"], session["turns"]) == ("assistant", 1)
    assert (await talk.choose(eins))["turns"] == 2


@pytest.mark.any_database
async def test_choosing_is_refused_during_an_answer_and_for_other_owners(talk: Talk, charlie_api: Api) -> None:
    one = await talk.say("one")
    await talk.say("eins", replaces=one)
    status, _ = await charlie_api.post(f"{talk.path}/{one}/choose")
    assert status == 404
    status, _ = await talk.api.post(f"{talk.path}/{talk.session.pk}/choose")
    assert status == 404
    two = await talk.say("two")
    open_run = {"state": "running", "lease_expires_at": lease_end()}
    await in_thread(lambda: Run.objects.filter(pk=two).update(**open_run))
    status, body = await talk.api.post(f"{talk.path}/{one}/choose")
    assert (status, body["error"]["code"], body["error"]["details"]["run_id"]) == (409, "conflict", two)
    await in_thread(lambda: Run.objects.filter(pk=two).update(state="completed"))


@pytest.mark.django_db
def test_the_path_to_a_run_takes_one_query(alice: Owner) -> None:
    session = session_make(alice, agent_make("assistant"))
    runs: list[Run] = []
    for turn in range(1, 30):
        before = runs[-1].pk if runs else None
        run = Run(owner=alice, session=session, turn=turn, follows=before, state="completed", request_id="r")
        runs.append(run)
    Run.objects.bulk_create(runs)
    with CaptureQueriesContext(connection) as queries:
        assert list(path_to(runs[9])) == [run.pk for run in runs[:10]]
    assert len(queries) == 1


@pytest.mark.django_db
def test_the_migration_fills_in_the_run_that_each_run_follows(alice: Owner) -> None:
    session = session_make(alice, agent_make("assistant"))
    turns = ((1, True), (2, True), (2, True), (1, False), (2, False))
    runs = [
        Run(owner=alice, session=session, turn=turn, superseded=superseded, state="completed", request_id="r")
        for turn, superseded in turns
    ]
    Run.objects.bulk_create(runs)
    import_module("gateway.migrations.0013_branches").fill(apps, None)
    one, two, again, edited, after = (run.pk for run in runs)
    found = dict(Run.objects.values_list("pk", "follows"))
    assert found == {one: None, two: one, again: one, edited: None, after: edited}


def long_session(alice: Owner, turns: int) -> tuple[Session, list[Run], Run]:
    """Return a session, the runs of its shown branch, and another version of its first turn."""
    session = session_make(alice, agent_make("assistant"))
    known = {"owner": alice, "session": session, "state": "completed", "request_id": "r"}
    runs: list[Run] = []
    for turn in range(1, turns + 1):
        runs.append(Run(turn=turn, follows=runs[-1].pk if runs else None, **known))
    other = Run(turn=1, superseded=True, **known)
    Run.objects.bulk_create([*runs, other])
    Session.objects.update(turns=turns)
    return session, runs, other


def shown_of(session: Session) -> list[Run]:
    return list(Run.objects.filter(session=session, superseded=False).order_by("id"))


@pytest.mark.django_db
def test_a_choice_in_a_long_session_is_made_in_short_transactions(
    alice: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.runs.branches.TURNS_AT_ONCE", 20)
    session, runs, other = long_session(alice, 60)
    for chosen, expected in ((other, [other]), (runs[0], runs)):
        parts = []
        for _ in branches.branch_choose(caller_make(alice), session.pk, chosen.pk):
            parts.append(shown_of(session))
            if Session.objects.get().branch_until:
                with pytest.raises(SessionBusy):
                    open_native(caller_make(alice), session_id=session.pk, **MESSAGE)
        assert shown_of(session) == expected
        # In between, the beginning of a branch is shown.
        assert all(part in (runs[: len(part)], [other]) for part in parts)
        assert len({len(part) for part in parts}) > 3
        assert Session.objects.values_list("turns", "branch_end", "branch_until").get() == (len(expected), None, None)


@pytest.mark.django_db
def test_the_sweep_completes_a_choice_whose_process_died(alice: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.runs.branches.TURNS_AT_ONCE", 20)
    session, runs, other = long_session(alice, 60)
    work = branches.branch_choose(caller_make(alice), session.pk, other.pk)
    while len(shown_of(session)) == 60:
        next(work)
    work.close()
    now = timezone.now()
    branches_sweep(now)
    assert len(shown_of(session)) > 1  # its lease has not expired
    with pytest.raises(SessionBusy):
        branch_choose(caller_make(alice), session.pk, runs[0].pk)
    branches_sweep(now + LEASE)
    assert shown_of(session) == [other]
    branch_choose(caller_make(alice), session.pk, runs[0].pk)
    assert shown_of(session) == runs


@pytest.mark.django_db
def test_the_sweep_goes_on_if_a_session_is_deleted_while_its_branch_is_shown(
    alice: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, runs, other = long_session(alice, 3)
    BranchLease.take(session, other.pk)
    later = timezone.now() + LEASE

    def deleted_meanwhile(runs: Any) -> Any:
        session_discard(session)
        return read(runs)

    read = branches.read_tree
    monkeypatch.setattr(branches, "read_tree", deleted_meanwhile)
    branches_sweep(later)
    assert shown_of(session) == runs
    monkeypatch.undo()
    session_restore(alice.pk, session.pk)
    branches_sweep(later + LEASE)
    assert shown_of(session) == [other]


@pytest.mark.django_db
def test_a_process_that_lost_its_lease_changes_nothing_more(alice: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.runs.rows.TURNS_AT_ONCE", 20)
    monkeypatch.setattr("gateway.runs.branches.TURNS_AT_ONCE", 20)
    session, runs, _ = long_session(alice, 60)
    work = later_hide_slices(runs[0])
    while len(shown_of(session)) == 60:
        next(work)
    branches_sweep(timezone.now() + LEASE)
    assert shown_of(session) == runs
    with pytest.raises(SessionBusy):
        next(work)
    assert shown_of(session) == runs


def hide_at_once(turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("rows", "branches"):
        monkeypatch.setattr(f"gateway.runs.{place}.TURNS_AT_ONCE", turns)


async def seven_turns(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> str:
    """Have more turns than one transaction hides, and return the first."""
    hide_at_once(2, monkeypatch)
    first, *_ = [await talk.say(f"Turn {number}") for number in range(1, 8)]
    return first


@pytest.mark.any_database
async def test_replacing_a_turn_that_very_many_follow_hides_these_first(
    talk: Talk, alice: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await seven_turns(talk, monkeypatch)
    with pytest.raises(LaterTurnsShown):
        await in_thread(
            lambda: open_native(
                caller_make(alice), session_id=talk.session.pk, replaces=UUID(first), content="Uno", request_id="r"
            )
        )
    assert len(await talk.shown()) == 7
    await talk.say("Uno", replaces=first)
    assert (await talk.shown(), talk.sent()) == (["Uno"], ["Uno"])
    assert (await in_thread(Session.objects.get)).branch_until is None
    await talk.choose(first)
    assert len(await talk.shown()) == 7
    await talk.say("Turn 8")
    assert len(talk.sent()) == 8


@pytest.mark.any_database
async def test_if_the_new_turn_is_refused_the_later_ones_are_shown_again(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await seven_turns(talk, monkeypatch)
    opened = rows.messages_insert
    calls = iter((RuntimeError("the disk failed"),))

    def fail_once(*args: Any, **kwargs: Any) -> Any:
        if error := next(calls, None):
            raise error
        return opened(*args, **kwargs)

    monkeypatch.setattr(rows, "messages_insert", fail_once)
    assert (await talk.api.post(talk.path, {"content": "Uno", "replaces": first}))[0] == 500
    session = await in_thread(Session.objects.get)
    assert (len(await talk.shown()), session.turns, session.branch_until) == (7, 7, None)
    await talk.say("Uno", replaces=first)
    assert await talk.shown() == ["Uno"]


@pytest.mark.any_database
async def test_if_the_client_disconnects_while_later_turns_are_hidden_they_are_shown_again(
    talk: Talk, alice: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await seven_turns(talk, monkeypatch)
    loop, leases = asyncio.get_running_loop(), []

    def disconnected(replaced: Run) -> Slices[BranchLease | None]:
        loop.call_soon_threadsafe(request.cancel)
        leases.append((yield from later_hide_slices(replaced)))
        return leases[0]

    monkeypatch.setattr(opening, "later_hide_slices", disconnected)
    options = MESSAGE | {"session_id": talk.session.pk, "replaces": UUID(first)}
    request = asyncio.create_task(opening.open_run(open_native, caller_make(alice), **options))
    with pytest.raises(asyncio.CancelledError):
        await request

    async def shown_again() -> bool:
        session = await in_thread(Session.objects.get)
        return bool(leases) and session.branch_until is None and len(await talk.shown()) == 7

    await eventually_async(shown_again, within=5)


async def test_a_client_that_edits_an_early_message_of_a_long_session_replaces_it(
    alice_api: Api, alice: Owner, session: Session, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[Any] = []
    headers = {"x-daybook-session": "chat-1"}
    for number in range(1, 7):
        messages.append({"role": "user", "content": f"Turn {number}"})
        model.script(f"Answer {number}.")
        await ask(alice_api, *messages, headers=headers)
        messages.append({"role": "assistant", "content": f"Answer {number}."})
    hide_at_once(2, monkeypatch)
    model.script("Again.")
    await ask(alice_api, *messages[:2], {"role": "user", "content": "Edited"}, headers=headers)
    runs = await in_thread(lambda: list(Run.objects.filter(superseded=False).values_list("turn", "text")))
    assert runs == [(1, "Answer 1."), (2, "Again.")]
    assert await in_thread(lambda: Session.objects.filter(branch_until__isnull=False).count()) == 0


@pytest.mark.django_db
def test_choosing_sees_changes_made_just_before_the_lock(alice: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_make(alice, agent_make("assistant"))
    known = {"owner": alice, "session": session, "state": "completed", "request_id": "r"}
    shown = Run(turn=1, **known)
    chosen, other = (Run(turn=1, superseded=True, **known) for _ in range(2))
    Run.objects.bulk_create([shown, chosen, other])
    late = Run(turn=2, follows=other.pk, **known)

    def another_request(runs: Any) -> Any:
        found = read(runs)
        monkeypatch.undo()
        branch_choose(caller_make(alice), session.pk, other.pk)
        late.save(force_insert=True)
        return found

    read = branches.read_tree  # type: ignore[attr-defined]
    monkeypatch.setattr(branches, "read_tree", another_request)
    branch_choose(caller_make(alice), session.pk, chosen.pk)
    assert list(Run.objects.filter(superseded=False)) == [chosen]
    branch_choose(caller_make(alice), session.pk, other.pk)
    assert list(Run.objects.filter(superseded=False).order_by("turn")) == [other, late]
