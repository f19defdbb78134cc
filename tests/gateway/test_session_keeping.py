"""Sessions: pinning, archiving, export, deletion with undo, and temporary sessions"""

import contextlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from gateway import services
from gateway.errors import RunSuperseded
from gateway.models import Message, Run, Session
from gateway.runs import closing
from gateway.runs.context import RunOutput
from gateway.runs.native import open_native
from gateway.services import session_get
from gateway.sessions.keeping import (
    session_change,
    session_delete_slices,
    session_discard,
    session_restore,
    sessions_purge,
)
from gateway.sweep import sessions_sweep
from memories.database.access import in_thread
from memories.database.lanes import DatabaseBusy
from memories.errors import NotFound
from memories.models import Owner
from tests.conftest import Api
from tests.factories import agent_make, caller_make, session_make
from tests.overlapping import only_postgresql, overlap
from tests.scripted_model import ScriptedModel
from tests.unsliced import session_delete

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.fixture
def session(alice: Owner) -> Session:
    return session_make(alice, agent_make(), title="The oven")


def message_make(session: Session, text: str, role: str = "user", **fields: object) -> Message:
    run = Run.objects.create(owner=session.owner, session=session, turn=1, state="completed", request_id="r")
    seq = Message.objects.filter(session=session).count() + 1
    return Message.objects.create(
        owner=session.owner, session=session, run=run, seq=seq, role=role, text=text, created_at=NOON, **fields
    )


async def test_title_pinned_and_archived_change_independently(alice_api: Api, session: Session) -> None:
    path = f"/api/sessions/{session.pk}"
    status, body = await alice_api.call("PATCH", path, {"pinned": True})
    assert (status, body["title"], body["pinned"], body["archived"]) == (200, "The oven", True, False)
    _, body = await alice_api.call("PATCH", path, {"archived": True})
    assert (body["pinned"], body["archived"]) == (True, True)
    _, body = await alice_api.call("PATCH", path, {"title": "Bread", "pinned": False, "archived": False})
    assert (body["title"], body["pinned"], body["archived"]) == ("Bread", False, False)


async def test_archived_sessions_can_be_filtered(alice_api: Api, alice: Owner, session: Session) -> None:
    other = await in_thread(session_make, alice, session.agent, title="Trains")
    await alice_api.call("PATCH", f"/api/sessions/{session.pk}", {"archived": True})

    async def listed(query: str) -> set[str]:
        return {row["id"] for row in (await alice_api.get(f"/api/sessions{query}"))[1]["data"]}

    assert await listed("") == {str(session.pk), str(other.pk)}
    assert await listed("?archived=true") == {str(session.pk)}
    assert await listed("?archived=false") == {str(other.pk)}


async def test_a_search_returns_snippets_and_turns(alice_api: Api, charlie_api: Api, session: Session) -> None:
    message = await in_thread(message_make, session, "The oven light is broken, again")
    _, body = await alice_api.get("/api/sessions?search=light%20bro")
    (row,) = body["data"]
    assert row["id"] == str(session.pk)
    assert row["match_count"] == 1
    assert row["matches"] == [
        {
            "message_id": "1",
            "turn_id": str(message.run_id),
            "role": "user",
            "snippet": "The oven light is broken, again",
            "highlights": [[9, 14], [18, 24]],
            "created_at": "2026-11-20T12:00:00Z",
        }
    ]
    assert (await alice_api.get("/api/sessions?search=quince"))[1]["data"] == []
    assert len((await alice_api.get("/api/sessions?search="))[1]["data"]) == 1
    assert (await charlie_api.get("/api/sessions?search=light"))[1]["data"] == []
    assert (await alice_api.get("/api/sessions?search=" + "x" * 201))[0] == 400


async def test_a_deleted_session_can_be_restored_completely(alice_api: Api, session: Session) -> None:
    await in_thread(message_make, session, "The oven light is broken")
    path = f"/api/sessions/{session.pk}"
    assert (await alice_api.call("DELETE", f"{path}?restorable=true"))[0] == 204
    for gone in (path, f"{path}/messages", f"{path}/export"):
        assert (await alice_api.get(gone))[0] == 404
    assert (await alice_api.get("/api/sessions"))[1]["data"] == []
    assert (await alice_api.get("/api/sessions?search=light"))[1]["data"] == []
    assert (await alice_api.post(f"{path}/turns", {"content": "Hi"}))[0] == 404
    assert (await alice_api.call("DELETE", path))[0] == 404
    await in_thread(sessions_sweep)  # before the minute is over
    status, body = await alice_api.post(f"{path}/restore")
    assert (status, body["title"]) == (200, "The oven")
    assert [row["content"] for row in (await alice_api.get(f"{path}/messages"))[1]["data"]] == [
        "The oven light is broken"
    ]
    assert (await alice_api.post(f"{path}/restore"))[0] == 404


async def test_nobody_else_restores_a_session(charlie_api: Api, session: Session) -> None:
    await in_thread(session_discard, session)
    assert (await charlie_api.post(f"/api/sessions/{session.pk}/restore"))[0] == 404


def test_after_a_minute_a_deleted_session_is_purged(session: Session, alice: Owner) -> None:
    message_make(session, "The oven light is broken")
    session_discard(session)
    assert sessions_purge(timezone.now() + timedelta(seconds=59)) == 0
    assert sessions_purge(timezone.now() + timedelta(seconds=61)) == 1
    assert not Session.with_deleted.exists()
    assert not Message.objects.exists()
    with pytest.raises(NotFound):
        session_restore(alice.pk, session.pk)


def test_a_long_session_is_deleted_in_short_transactions(session: Session, alice: Owner) -> None:
    rows = [Message(owner=alice, session=session, seq=seq, role="user", text="Hi") for seq in range(1, 121)]
    Message.objects.bulk_create(rows)
    work = session_delete_slices(session)
    next(work)
    assert not Session.objects.exists()
    with pytest.raises(NotFound):
        session_restore(alice.pk, session.pk)
    next(work)
    assert 0 < Message.objects.count() < 120
    work.close()  # the process was stopped
    assert sessions_purge(timezone.now()) == 1
    assert not Message.objects.exists()
    assert not Session.with_deleted.exists()


async def test_a_deletion_that_was_interrupted_can_be_repeated(
    alice_api: Api, charlie_api: Api, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/api/sessions/{session.pk}"
    await in_thread(message_make, session, "The oven light is broken")
    with monkeypatch.context() as busy:
        busy.setattr("gateway.sessions.keeping.deleting", _refuse)
        assert (await alice_api.call("DELETE", path))[0] == 503
    assert (await alice_api.get(path))[0] == 404
    assert (await charlie_api.call("DELETE", path))[0] == 404
    assert (await alice_api.call("DELETE", f"{path}?restorable=true"))[0] == 404, "it can no longer be restored"
    assert (await alice_api.call("DELETE", path))[0] == 204
    assert not await in_thread(lambda: Session.with_deleted.exists() or Message.objects.exists())
    assert (await alice_api.call("DELETE", path))[0] == 404


def _refuse(rows: object) -> None:
    raise DatabaseBusy("The database is busy.")


def test_a_sweep_that_purges_for_long_leaves_the_rest_to_the_next(
    session: Session, alice: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    message_make(session, "The oven light is broken")
    session_discard(session)
    later = timezone.now() + timedelta(seconds=61)
    monkeypatch.setattr("gateway.sessions.keeping.PURGE_SECONDS", 0.0)
    assert sessions_purge(later) == 0
    monkeypatch.undo()
    assert sessions_purge(later) == 1


async def test_a_client_that_names_a_deleted_session_gets_a_new_one(
    alice_api: Api, alice: Owner, model: ScriptedModel
) -> None:
    agent = await in_thread(agent_make)
    first = await in_thread(Session.objects.create, owner=alice, agent=agent, external_id="chat-1")
    await in_thread(session_discard, first)
    model.script("Hello.")
    body = {"model": "assistant", "messages": [{"role": "user", "content": "Hi"}]}
    response = await alice_api.raw("POST", "/v1/chat/completions", body, **{"x-daybook-session": "chat-1"})
    assert response.status_code == 200
    assert response["x-daybook-session"] != str(first.pk)
    restored = await in_thread(session_restore, alice.pk, first.pk)
    assert restored.external_id is None
    assert await in_thread(lambda: Session.objects.count()) == 2


async def test_changing_a_session_that_was_just_deleted_is_not_found(
    alice_api: Api, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found_and_deleted(*given: Any, **options: Any) -> Session:
        found = session_get(*given, **options)
        session_delete(found)
        return found

    monkeypatch.setattr(services, "session_get", found_and_deleted)
    status, body = await alice_api.call("PATCH", f"/api/sessions/{session.pk}", {"title": "Bread"})
    assert (status, body["error"]["code"]) == (404, "not_found")


def test_a_running_answer_is_stored_in_a_session_deleted_meanwhile(session: Session, alice: Owner) -> None:
    context = open_native(
        caller_make(alice), session_id=session.pk, content="Hi", replaces=None, request_id="r", keep_attached=False
    )
    session_discard(session)
    messages = [{"role": "assistant", "content": "Fine."}]
    closing.close(context, RunOutput(text="Fine.", messages=messages), state=Run.State.COMPLETED)
    session_restore(alice.pk, session.pk)
    assert Run.objects.get().state == "completed"
    assert list(Message.objects.order_by("seq").values_list("text", flat=True)) == ["Hi", "Fine."]


@only_postgresql
@pytest.mark.django_db(transaction=True)
def test_a_session_is_deleted_while_its_answer_is_stored(session: Session, alice: Owner) -> None:
    context = open_native(caller_make(alice), session_id=session.pk, content="Hi", replaces=None, request_id="r")
    output = RunOutput(text="Fine.", messages=[{"role": "assistant", "content": "Fine."}])

    def store() -> None:
        with contextlib.suppress(RunSuperseded):
            closing.close(context, output, state=Run.State.COMPLETED)

    overlap(lambda: session_delete(session), store, pause_after="DELETE gateway_message run_id")
    assert not Session.with_deleted.exists()
    assert not Message.objects.exists()


def test_temporary_sessions_are_purged_a_day_after_their_last_use(session: Session, alice: Owner) -> None:
    temporary = session_make(alice, session.agent, temporary=True)
    message_make(temporary, "nobody should know")
    now = timezone.now()
    assert sessions_purge(now + timedelta(hours=23)) == 0
    Session.objects.update(last_active_at=now - timedelta(hours=25))
    assert sessions_purge(now) == 1
    assert list(Session.with_deleted.all()) == [session]
    assert not Message.objects.exists()


async def test_a_session_is_exported_as_markdown(alice_api: Api, session: Session) -> None:
    def fill() -> None:
        message_make(session, "Why is the oven cold?")
        message_make(session, "The **light** is broken.", role="assistant")
        message_make(session, "raw result", role="tool", tool_call_id="c")
        message_make(
            session,
            "",
            parts=[{"type": "text", "text": "And this?"}, {"type": "file", "file": {"filename": "plan.pdf"}}],
        )
        message_make(session, "replaced")
        Run.objects.filter(messages__text="replaced").update(superseded=True)

    await in_thread(fill)
    response = await alice_api.raw("GET", f"/api/sessions/{session.pk}/export")
    assert response["Content-Disposition"] == 'attachment; filename="the-oven.md"'
    assert response["Content-Type"] == "text/markdown; charset=utf-8"
    text = b"".join([part async for part in response]).decode()
    assert text == (
        f"# The oven\n\nWith assistant, from {session.created_at:%Y-%m-%d %H:%M} UTC.\n"
        "\n## You, 2026-11-20 12:00\n\nWhy is the oven cold?\n"
        "\n## assistant, 2026-11-20 12:00\n\nThe **light** is broken.\n"
        "\n## You, 2026-11-20 12:00\n\nAnd this?\n\n*Attached: plan.pdf*\n"
    )


async def test_the_partial_text_of_a_failed_answer_is_exported_as_incomplete(alice_api: Api, session: Session) -> None:
    def fill() -> None:
        message_make(session, "Why is the oven cold?")
        message_make(session, "And the light?")
        message_make(session, "It is broken.", role="assistant")
        failed = Message.objects.get(text="Why is the oven cold?").run_id
        Run.objects.filter(pk=failed).update(state=Run.State.FAILED, text="Because the ", finished_at=NOON)

    await in_thread(fill)
    response = await alice_api.raw("GET", f"/api/sessions/{session.pk}/export")
    text = b"".join([part async for part in response]).decode()
    assert text.partition("UTC.\n")[2] == (
        "\n## You, 2026-11-20 12:00\n\nWhy is the oven cold?\n"
        "\n## assistant, 2026-11-20 12:00\n\nBecause the\n\n*Incomplete*\n"
        "\n## You, 2026-11-20 12:00\n\nAnd the light?\n"
        "\n## assistant, 2026-11-20 12:00\n\nIt is broken.\n"
    )


async def test_a_session_is_exported_as_json(alice_api: Api, session: Session) -> None:
    await in_thread(message_make, session, "Why is the oven “cold”?")
    await in_thread(message_make, session, "result", role="tool", tool_call_id="c")
    response = await alice_api.raw("GET", f"/api/sessions/{session.pk}/export?format=json")
    exported = json.loads(b"".join([part async for part in response]))
    assert exported["session"]["title"] == "The oven"
    assert [(row["role"], row["content"]) for row in exported["messages"]] == [
        ("user", "Why is the oven “cold”?"),
        ("tool", "result"),
    ]
    assert (await alice_api.get(f"/api/sessions/{session.pk}/export?format=pdf"))[0] == 400


async def test_the_error_for_an_unknown_agent_names_the_field(alice_api: Api) -> None:
    status, answer = await alice_api.post("/api/sessions", {"agent": "nobody"})
    assert (status, answer["error"]["code"], answer["error"]["param"]) == (404, "model_not_found", "agent")


def test_a_session_is_renamed_and_pinned_at_the_same_time(session: Session) -> None:
    read_before = Session.objects.get(pk=session.pk)
    session_change(session, title="The cold oven")
    session_change(read_before, pinned=True)
    session.refresh_from_db()
    assert (session.title, bool(session.pinned_at)) == ("The cold oven", True)


async def test_a_page_of_long_messages_has_fewer_of_them(alice_api: Api, session: Session, settings: Settings) -> None:
    settings.DAYBOOK_MAX_BODY = 1000
    for text in ("a" * 400, "b" * 400, "c" * 400, "d" * 2000, "e"):
        await in_thread(message_make, session, text)
    pages, after = [], ""
    while True:
        _, page = await alice_api.get(f"/api/sessions/{session.pk}/messages?limit=4{after}")
        pages.append("".join(message["content"][0] for message in page["data"]))
        if not page["has_more"]:
            break
        after = f"&after={page['last_id']}"
    assert pages == ["ab", "c", "d", "e"]
