"""Attachment bytes: stored as files, once per owner, and deleted with the last session that uses them"""

import base64
import hashlib
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio
import time_machine
from django.core.files.storage import storages
from django.db import connection
from django.urls import reverse
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from config.processes.worker import SWEEPS
from gateway.attachments import storing
from gateway.attachments.decoding import bytes_in, joined_data, media_type, split_data
from gateway.attachments.files import ReadFailure
from gateway.attachments.references import Attached, PartsDecoder, PartsEncoder, Reference, attached, data_of
from gateway.attachments.storing import AttachmentStore
from gateway.attachments.sweep import ScanPosition, attachments_sweep
from gateway.attachments.uses import deletion_begin, uses_reserve
from gateway.models import Agent, Attachment, AttachmentUse, Message, Run, Session
from gateway.runs.closing import close
from gateway.runs.context import RunOutput
from gateway.runs.fingerprint import canonical_content, read_conversation
from gateway.runs.native import open_native
from gateway.runs.requested import V1Request
from gateway.runs.v1 import open_v1
from memories.api.export import export_lines
from memories.database.access import in_thread
from memories.ids import uuid7
from memories.json_output import LONG
from memories.models import Owner
from tests.conftest import Api
from tests.factories import caller_make, key_make, session_make
from tests.gateway.attachments import LARGE, PNG, TEXT, paper, picture, sound, storage_folder, stored_files, sweep_run
from tests.gateway.v1 import ask
from tests.pages import client_of, html_of
from tests.queries import statements
from tests.scripted_model import ScriptedModel, calls
from tests.unsliced import forget_owner, session_delete

CONTENT: list[dict[str, Any]] = [TEXT, picture(LARGE), paper(), sound()]
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


def note_of(name: str) -> dict[str, str]:
    return {"type": "text", "text": f"[{name}] The file is no longer stored."}


async def raw_parts() -> list[str]:
    """Return the stored `parts` of the messages as text."""

    def read() -> list[str]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT parts FROM gateway_message WHERE parts IS NOT NULL ORDER BY session_id, seq")
            return [row[0] if isinstance(row[0], str) else json.dumps(row[0]) for row in cursor.fetchall()]

    return await in_thread(read)


async def count_of(rows: Any) -> int:
    return int(await in_thread(rows.count))


@pytest_asyncio.fixture
async def turns(session: Session) -> AsyncIterator[str]:
    """Yield the URL of a session's turns, and delete the stored files afterwards."""
    yield f"/api/sessions/{session.pk}/turns"
    for path in stored_files():
        path.unlink()


async def test_bytes_are_stored_as_files_and_the_row_refers_to_them(
    alice: Owner, alice_api: Api, session: Session, model: ScriptedModel, turns: str
) -> None:
    model.script("A picture, a paper and a sound.", "Still.")
    status, _ = await alice_api.post(turns, {"content": CONTENT})
    assert (status, model.calls[0].messages[-1]["content"]) == (200, CONTENT)
    (row,) = await raw_parts()
    assert len(row) < 1_500
    assert base64.b64encode(LARGE[:60]).decode() not in row
    stored = {path.name: path for path in stored_files(alice.pk)}
    assert {path.read_bytes() for path in stored.values()} == {LARGE, b"%PDF-1.7" + LARGE, b"RIFF0000WAVE" + LARGE}
    for name, path in stored.items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == name
        assert path == storage_folder() / str(alice.pk) / name[:2] / name
        assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        assert name in row
    facts = await in_thread(lambda: sorted(Attachment.objects.values_list("media_type", "size")))
    size = len(LARGE)
    assert facts == [("application/pdf", size + 8), ("audio/wav", size + 12), ("image/png", size)]
    assert await count_of(AttachmentUse.objects.filter(session=session)) == 3
    _, listed = await alice_api.get(f"/api/sessions/{session.pk}/messages")
    assert listed["data"][0]["content"] == CONTENT
    await alice_api.post(turns, {"content": "And now?"})
    assert model.calls[1].messages[-3]["content"] == CONTENT, "it is sent again with the next turn"


@pytest.mark.any_database
async def test_exports_and_the_page_show_the_original_content(
    alice: Owner, alice_api: Api, session: Session, model: ScriptedModel, turns: str
) -> None:
    model.script("Fine.")
    await alice_api.post(turns, {"content": CONTENT})
    exported = (await alice_api.raw("GET", f"/api/sessions/{session.pk}/export?format=json")).streaming_content
    assert json.loads(b"".join([piece async for piece in exported]))["messages"][0]["content"] == CONTENT
    lines = await in_thread(lambda: [json.loads(line) for line in export_lines(alice.pk)])
    assert [line["content"] for line in lines if line["type"] == "message"] == [CONTENT, "Fine."]

    def shown() -> None:
        at = reverse("chat-attachment", kwargs={"session_id": session.pk, "seq": 1, "index": 1})
        page = html_of(client_of(alice), f"/c/{session.pk}/")
        assert (f'<img src="{at}"' in page, "paper.pdf" in page, ReadFailure.MISSING in page) == (True, True, False)
        answer = client_of(alice).get(at)
        assert (answer.status_code, answer.content, answer["Content-Type"]) == (200, LARGE, "image/png")
        pdf = reverse("chat-attachment", kwargs={"session_id": session.pk, "seq": 1, "index": 2})
        assert client_of(alice).get(pdf).status_code == 404

    await in_thread(shown)


@pytest.mark.any_database
async def test_versions_and_branches_of_a_turn_share_one_file(
    alice: Owner, alice_api: Api, model: ScriptedModel, turns: str
) -> None:
    model.script("One.", "Two.", "Three.", "Four.")
    _, first = await alice_api.post(turns, {"content": [TEXT, picture(LARGE)]})
    _, second = await alice_api.post(turns, {"replaces": first["id"]})
    edited = {"content": "Its colour?", "replaces": second["id"], "keep_attached": True}
    await alice_api.post(turns, edited)
    assert model.calls[1].messages[-1]["content"] == [TEXT, picture(LARGE)]
    assert model.calls[2].messages[-1]["content"] == [{"type": "text", "text": "Its colour?"}, picture(LARGE)]
    await alice_api.post(turns, {"content": [TEXT, picture(LARGE)]})
    assert len(stored_files(alice.pk)) == 1
    assert await count_of(Attachment.objects) == 1
    runs = await in_thread(lambda: list(Run.objects.order_by("pk").values_list("user_key", flat=True)))
    assert runs[0] == runs[1] == runs[3] != runs[2], "the hash of a message covers the bytes"


async def test_owners_never_share_a_file(
    alice: Owner, charlie: Owner, alice_api: Api, agent: Agent, model: ScriptedModel, turns: str
) -> None:
    model.script("One.", "Two.")
    await alice_api.post(turns, {"content": [picture(LARGE)]})
    other = await in_thread(session_make, charlie, agent)
    charlie_api = Api((await in_thread(key_make, charlie))[1])
    await charlie_api.post(f"/api/sessions/{other.pk}/turns", {"content": [picture(LARGE)]})
    assert (len(stored_files(alice.pk)), len(stored_files(charlie.pk))) == (1, 1)


async def test_short_attachments_and_noncanonical_base64_stay_in_the_message(
    alice_api: Api, session: Session, model: ScriptedModel, turns: str
) -> None:
    model.script("Fine.")
    noncanonical = picture(LARGE)
    noncanonical["image_url"]["url"] = (
        noncanonical["image_url"]["url"][:-4] + "AB=="
    )  # decodes, and would come back as AA==
    said = [
        picture(PNG),
        noncanonical,
        {"type": "image_url", "image_url": {"url": "https://example.org/" + "a" * 3_000}},
    ]
    await alice_api.post(turns, {"content": said})
    assert stored_files() == []
    _, listed = await alice_api.get(f"/api/sessions/{session.pk}/messages")
    assert listed["data"][0]["content"] == said


async def test_a_tool_result_may_contain_a_picture(
    alice: Owner, alice_api: Api, model: ScriptedModel, turns: str
) -> None:
    model.script(calls(("look", "{}")), "A cat.")
    _, turn = await alice_api.post(turns, {"content": "Look.", "tools": [TOOL]})
    result = {"tool_call_id": turn["tool_calls"][0]["id"], "content": [picture(LARGE)]}
    status, _ = await alice_api.post(f"{turns}/{turn['id']}/results", {"results": [result], "tools": [TOOL]})
    assert (status, model.calls[1].messages[-1]["content"], len(stored_files(alice.pk))) == (200, [picture(LARGE)], 1)


async def test_attachments_add_no_statement_to_a_turn_without_them_and_one_inside_its_transaction(
    alice_api: Api, model: ScriptedModel, turns: str
) -> None:
    model.script("One.", "Two.", "Three.")
    await alice_api.post(turns, {"content": "Warm."})
    async with statements() as found:
        await alice_api.post(turns, {"content": [TEXT, picture(PNG)]})
    assert not [sql for sql in found if "gateway_attachment" in sql]
    async with statements() as found:
        await alice_api.post(turns, {"content": [TEXT, picture(LARGE)]})
    opened = [place for place, sql in enumerate(found) if sql.startswith('INSERT INTO "gateway_run"')]
    about = [place for place, sql in enumerate(found) if "gateway_attachment" in sql]
    assert len([place for place in about if place > opened[0]]) == 1, "one statement in the transaction of the turn"


async def test_a_resent_conversation_is_recognised_and_its_file_is_stored_once(
    alice: Owner, alice_api: Api, agent: Agent, model: ScriptedModel, turns: str
) -> None:
    model.script("A cat.", "Grey.")
    asked = {"role": "user", "content": [TEXT, picture(LARGE)]}
    first = await ask(alice_api, asked)
    second = await ask(alice_api, asked, "A cat.", "Its colour?")
    assert (first.status, second.session) == (200, first.session)
    assert model.calls[1].messages[-3]["content"] == [TEXT, picture(LARGE)]
    assert len(stored_files(alice.pk)) == 1
    run = await in_thread(lambda: Run.objects.order_by("pk").first())
    assert run is not None
    assert run.user_key == read_conversation(alice.pk, "assistant", [asked]).user_key


async def test_a_conversation_recorded_with_inline_bytes_is_still_recognised(
    alice: Owner, alice_api: Api, agent: Agent, model: ScriptedModel, turns: str
) -> None:
    asked = {"role": "user", "content": [TEXT, picture(LARGE)]}

    def record_with_inline_bytes() -> UUID:
        request = V1Request(
            caller=caller_make(alice), agent="assistant", messages=(asked,), client_system="", request_id="r"
        )
        context = open_v1(request)
        close(context, RunOutput(text="A cat."), state=Run.State.COMPLETED)
        return context.session_id

    session_id = await in_thread(record_with_inline_bytes)
    (row,) = await raw_parts()
    assert len(row) > len(LARGE)
    model.script("Grey.", "Old.")
    answer = await ask(alice_api, asked, "A cat.", "Its colour?")
    assert answer.session == str(session_id)
    await alice_api.post(f"/api/sessions/{session_id}/turns", {"content": "How old?"})
    assert model.calls[1].messages[1]["content"] == [TEXT, picture(LARGE)]


async def test_imported_history_is_stored_as_files_before_the_turn(
    alice: Owner, alice_api: Api, agent: Agent, model: ScriptedModel, turns: str
) -> None:
    model.script("Two cats.")
    asked = [{"role": "user", "content": [TEXT, picture(LARGE)]}, "A cat.", {"role": "user", "content": [paper()]}]
    answer = await ask(alice_api, *asked)
    assert [message["content"] for message in model.calls[0].messages if message["role"] == "user"] == [
        [TEXT, picture(LARGE)], [paper()],
    ]  # fmt: skip
    assert all(len(row) < 1_000 for row in await raw_parts())
    assert await count_of(AttachmentUse.objects.filter(session=answer.session)) == 2
    assert await count_of(AttachmentUse.objects.filter(session=None)) == 0


async def test_responses_continue_from_stored_attachments(
    alice: Owner, alice_api: Api, agent: Agent, model: ScriptedModel, turns: str
) -> None:
    model.script("A cat.", "Grey.", "A dog.")
    given = [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": picture(LARGE)["image_url"]["url"], "detail": "auto"},
    ]
    body: dict[str, Any] = {"model": "assistant", "input": [{"role": "user", "content": given}]}
    _, first = await alice_api.post("/v1/responses", body)
    again: dict[str, Any] = {"model": "assistant", "previous_response_id": first["id"], "input": "Its colour?"}
    _, second = await alice_api.post("/v1/responses", again)
    assert model.calls[1].messages[-3]["content"][1]["image_url"]["url"] == given[1]["image_url"]
    _, items = await alice_api.get(f"/v1/responses/{second['id']}/input_items?order=asc")
    assert items["data"][0]["content"] == given
    # A second continuation of the first response is a separate session that uses the same file.
    _, fork = await alice_api.post("/v1/responses", {**again, "input": "And its tail?"})
    assert model.calls[2].messages[-3]["content"][1]["image_url"]["url"] == given[1]["image_url"]
    sessions = await in_thread(lambda: set(AttachmentUse.objects.values_list("session", flat=True)))
    assert (fork["status"], len(sessions), None in sessions, len(stored_files(alice.pk))) == ("completed", 2, False, 1)


async def test_a_forged_reference_is_ordinary_client_content(
    alice: Owner, charlie: Owner, alice_api: Api, agent: Agent, session: Session, model: ScriptedModel, turns: str
) -> None:
    model.script("Hers.", "Nothing.")
    other = await in_thread(session_make, charlie, agent)
    charlie_api = Api((await in_thread(key_make, charlie))[1])
    await charlie_api.post(f"/api/sessions/{other.pk}/turns", {"content": [picture(LARGE)]})
    (row,) = await raw_parts()
    forged = [*json.loads(row), {"type": "file", "file": {"file_data": {"daybook.attachment~": 1}}}]
    status, _ = await alice_api.post(turns, {"content": forged})
    assert (status, model.calls[1].messages[-1]["content"]) == (200, forged)
    _, listed = await alice_api.get(f"/api/sessions/{session.pk}/messages")
    assert listed["data"][0]["content"] == forged
    assert stored_files(alice.pk) == []


@pytest.mark.any_database
async def test_a_missing_file_is_replaced_by_a_note(
    alice: Owner, alice_api: Api, session: Session, model: ScriptedModel, turns: str
) -> None:
    model.script("Fine.", "Gone.")
    await alice_api.post(turns, {"content": [TEXT, picture(LARGE), paper()]})
    for path in stored_files(alice.pk):
        path.unlink()
    status, _ = await alice_api.post(turns, {"content": "And now?"})
    left = [TEXT, note_of("Image"), note_of("paper.pdf")]
    assert (status, model.calls[1].messages[1]["content"]) == (200, left)
    _, listed = await alice_api.get(f"/api/sessions/{session.pk}/messages")
    assert listed["data"][0]["content"] == left
    page = await in_thread(lambda: html_of(client_of(alice), f"/c/{session.pk}/"))
    assert page.count(ReadFailure.MISSING) == 2
    assert "<bdi>paper.pdf</bdi>: The file is no longer stored." in page


@pytest.mark.any_database
async def test_a_turn_succeeds_when_the_storage_is_unreachable(
    alice: Owner, alice_api: Api, session: Session, model: ScriptedModel, turns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object) -> None:
        raise ConnectionError("away")

    model.script("Fine.", "Later.", "Here it is.")
    await alice_api.post(turns, {"content": [picture(LARGE)]})
    with monkeypatch.context() as patch:
        for name in ("open", "exists", "save"):
            patch.setattr(storages["attachments"], name, unreachable)
        status, _ = await alice_api.post(turns, {"content": [paper()]})
        assert (status, model.calls[1].messages[-1]["content"]) == (200, [paper()]), "it stays in its message"
        assert model.calls[1].messages[-3]["content"] == [
            {"type": "text", "text": "[Image] The file cannot be read at the moment."}
        ]
        assert (await in_thread(lambda: client_of(alice).get(f"/c/{session.pk}/"))).status_code == 200
    await alice_api.post(turns, {"content": "Again."})
    assert [m["content"] for m in model.calls[2].messages if m["role"] == "user"] == [
        [picture(LARGE)], [paper()], "Again.",
    ]  # fmt: skip


async def test_bytes_stay_in_the_message_when_storing_takes_too_long(
    alice_api: Api, session: Session, model: ScriptedModel, turns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storing, "STORE_SECONDS", 0)
    model.script("Fine.")
    status, _ = await alice_api.post(turns, {"content": [picture(LARGE)]})
    _, listed = await alice_api.get(f"/api/sessions/{session.pk}/messages")
    assert (status, listed["data"][0]["content"]) == (200, [picture(LARGE)])
    assert len((await raw_parts())[0]) > len(LARGE)


async def test_a_file_is_deleted_with_the_last_session_that_uses_it(
    alice: Owner, alice_api: Api, agent: Agent, session: Session, model: ScriptedModel, turns: str
) -> None:
    assert attachments_sweep in SWEEPS
    model.script("One.", "Two.")
    other = await in_thread(session_make, alice, agent)
    await alice_api.post(turns, {"content": [picture(LARGE)]})
    await alice_api.post(f"/api/sessions/{other.pk}/turns", {"content": [picture(LARGE)]})
    for left, gone in ((1, session), (0, other)):
        await in_thread(session_delete, gone)
        await in_thread(sweep_run)
        assert (len(stored_files(alice.pk)), await count_of(Attachment.objects)) == (left, left)
    assert await count_of(AttachmentUse.objects) == 0
    assert not (storage_folder() / str(alice.pk)).exists(), "no empty folders are left"


async def test_a_refused_request_leaves_no_file(
    alice: Owner, alice_api: Api, agent: Agent, session: Session, turns: str
) -> None:
    status, _ = await alice_api.post(f"/api/sessions/{uuid7()}/turns", {"content": [picture(LARGE)]})
    refused = await ask(alice_api, {"role": "user", "content": [paper()]}, model="nobody")
    assert (status, refused.status, len(stored_files(alice.pk))) == (404, 404, 2)
    await in_thread(sweep_run)
    assert (stored_files(alice.pk), await count_of(Attachment.objects)) == ([], 0)


async def test_files_of_a_process_that_died_are_deleted_after_an_hour(alice: Owner, turns: str) -> None:
    await AttachmentStore(alice.pk).messages([{"content": [picture(LARGE)]}])
    await in_thread(sweep_run)
    assert len(stored_files(alice.pk)) == 1, "its message may still be in progress"
    with time_machine.travel(timezone.now() + timedelta(hours=2), tick=False):
        await in_thread(sweep_run)
    assert (stored_files(alice.pk), await count_of(Attachment.objects)) == ([], 0)


async def test_a_failed_or_interrupted_deletion_is_retried(
    alice: Owner, alice_api: Api, session: Session, model: ScriptedModel, turns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str) -> None:
        raise PermissionError(name)

    model.script("One.")
    await alice_api.post(turns, {"content": [picture(LARGE), paper(), sound()]})
    await in_thread(session_delete, session)
    with monkeypatch.context() as patch:
        patch.setattr(storages["attachments"], "delete", refuse)
        assert await in_thread(sweep_run)
    assert await count_of(Attachment.objects.exclude(deleting_at=None)) == 1
    assert not await in_thread(sweep_run), "the failed job left its lease"
    # One process dies before its file is deleted, another after it.
    for _ in range(2):
        file = await in_thread(deletion_begin, timezone.now())
        assert file is not None
    (storage_folder() / str(alice.pk) / file.sha256[:2] / file.sha256).unlink()
    assert await in_thread(deletion_begin, timezone.now()) is None, "other processes may still be deleting them"
    assert await count_of(Attachment.objects) == 3
    with time_machine.travel(timezone.now() + timedelta(minutes=11), tick=False):
        await in_thread(sweep_run)
    assert (stored_files(alice.pk), await count_of(Attachment.objects)) == ([], 0)


async def test_an_attachment_sent_while_its_file_is_being_deleted_stays_in_the_message(
    alice: Owner, alice_api: Api, session: Session, model: ScriptedModel, turns: str
) -> None:
    def begin() -> None:
        data = {hashlib.sha256(LARGE).hexdigest(): (len(LARGE), "image/png")}
        uses_reserve(alice.pk, data)
        AttachmentUse.objects.update(expires_at=timezone.now())
        assert deletion_begin(timezone.now())

    await in_thread(begin)
    model.script("One.")
    await alice_api.post(turns, {"content": [picture(LARGE)]})
    assert len((await raw_parts())[0]) > len(LARGE)
    with time_machine.travel(timezone.now() + timedelta(minutes=11), tick=False):
        await in_thread(sweep_run)
    # The file was deleted, and then the bytes were moved to a new one.
    _, listed = await alice_api.get(f"/api/sessions/{session.pk}/messages")
    assert listed["data"][0]["content"] == [picture(LARGE)]
    assert (len(stored_files(alice.pk)), await count_of(Attachment.objects.filter(deleting_at=None))) == (1, 1)
    assert len((await raw_parts())[0]) < 1_000


async def test_files_are_deleted_with_their_owner(
    alice: Owner, charlie: Owner, alice_api: Api, agent: Agent, model: ScriptedModel, turns: str
) -> None:
    model.script("One.", "Two.", "Three.")
    await alice_api.post(turns, {"content": [picture(LARGE)]})
    trusted = Api((await in_thread(lambda: key_make(alice, trusted=True)))[1])
    await ask(trusted, {"role": "user", "content": [paper()]}, headers={"X_Daybook_User": "somebody"})
    other = await in_thread(session_make, charlie, agent)
    charlie_api = Api((await in_thread(key_make, charlie))[1])
    await charlie_api.post(f"/api/sessions/{other.pk}/turns", {"content": [picture(LARGE)]})
    await AttachmentStore(alice.pk).messages([{"content": [sound()]}])  # its process died
    assert await count_of(Attachment.objects) == 4
    await in_thread(forget_owner, alice)
    await in_thread(sweep_run)
    assert ([path.read_bytes() for path in stored_files()], await count_of(Attachment.objects)) == ([LARGE], 1)
    assert len(stored_files(charlie.pk)) == 1


async def test_inline_bytes_stored_by_an_earlier_version_are_moved_to_files(
    alice: Owner, alice_api: Api, session: Session, model: ScriptedModel, turns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object) -> None:
        raise ConnectionError("away")

    noncanonical = picture(LARGE)
    noncanonical["image_url"]["url"] = noncanonical["image_url"]["url"][:-4] + "AB=="
    said = [CONTENT, "Words.", [picture(PNG)], [noncanonical], [*CONTENT, picture(LARGE)]]
    model.script(*["Fine."] * 5, "And found again.")
    position = ScanPosition()
    with monkeypatch.context() as patch:
        patch.setattr(storages["attachments"], "save", unreachable)
        for content in said:
            await alice_api.post(turns, {"content": content})
        keys = await in_thread(lambda: list(Run.objects.order_by("pk").values_list("user_key", flat=True)))
        assert await in_thread(sweep_run, position)
    assert not await in_thread(sweep_run, position), "it waits a minute before it retries the storage"
    with time_machine.travel(timezone.now() + timedelta(seconds=61), tick=False):
        assert await in_thread(sweep_run, position)
        assert not await in_thread(sweep_run, position), "nothing is left but what cannot be moved"
        found = await in_thread(lambda: Message.objects.order_by("pk").values_list("pk", flat=True).last())
        assert position.after == found
    assert len(stored_files(alice.pk)) == 3
    assert [len(row) > len(LARGE) for row in await raw_parts()] == [False, False, True, False]
    assert await count_of(AttachmentUse.objects.filter(session=session)) == 6
    _, listed = await alice_api.get(f"/api/sessions/{session.pk}/messages")
    assert [one["content"] for one in listed["data"] if one["role"] == "user"] == said
    await alice_api.post(turns, {"content": said[4]})
    again = await in_thread(lambda: Run.objects.order_by("-pk").values_list("user_key", flat=True).first())
    assert again == keys[4]


def test_a_reference_is_written_and_read_back(alice: Owner, session: Session) -> None:
    reference = Reference("ab" * 32, 4, "data:image/png;base64,", "digest")
    whole = {"type": "image_url", "image_url": {"url": attached(reference, "data:image/png;base64,AAAAAA==")}}
    Message.objects.create(owner=alice, session=session, seq=1, role="user", parts=[whole])
    (part,) = Message.objects.get().parts or ()
    text = data_of(part)
    assert isinstance(text, Attached)
    assert (text.reference, text.is_loaded, text) == (reference, False, "data:image/png;base64,")
    assert canonical_content([part]) == "digest"


async def test_only_new_messages_are_stored_and_each_content_is_hashed_once(alice: Owner, turns: str) -> None:
    messages = [{"role": "user", "content": [picture(LARGE)]}, {"role": "user", "content": [TEXT, paper()]}]
    kept = await AttachmentStore(alice.pk).messages(messages, first=1)
    assert kept == tuple(messages)
    assert len(stored_files(alice.pk)) == 1
    known = [data_of(message["content"][-1]) for message in kept]
    assert [type(text).__name__ for text in known] == ["Hashed", "Attached"]
    for message, plain in zip(kept, messages, strict=True):
        assert canonical_content(message["content"]) == canonical_content(plain["content"])
    again = await AttachmentStore(alice.pk).messages(kept)
    assert (again, len(stored_files(alice.pk))) == (kept, 2)


def test_a_native_run_regenerated_from_rows_of_an_earlier_version(alice: Owner, session: Session) -> None:
    caller = caller_make(alice)
    first = open_native(caller, session_id=session.pk, content=[TEXT, picture(LARGE)], replaces=None, request_id="1")
    close(first, RunOutput(text="A cat."), state=Run.State.COMPLETED)
    again = open_native(caller, session_id=session.pk, content=None, replaces=first.run_id, request_id="2")
    assert again.messages[-1]["content"] == [TEXT, picture(LARGE)]


@given(st.binary(max_size=300), st.sampled_from(["", "data:image/png;base64,", "data:a/b;c=d;base64,"]))
def test_base64_survives_decoding_and_encoding(data: bytes, head: str) -> None:
    text = joined_data(head, data)
    assert text == head + base64.b64encode(data).decode()
    assert split_data(text) == (head, data)
    assert bytes_in(text) == data


@given(st.text(alphabet="ABab+/=\n -", max_size=40))
def test_base64_that_would_not_round_trip_is_not_stored_as_a_file(text: str) -> None:
    split = split_data(text)
    assert split is None or joined_data(*split) == text


@pytest.mark.parametrize("size", [196_607, 196_608, 196_609, 400_000])
def test_large_data_is_decoded_in_slices(size: int) -> None:
    data = bytes(size)
    assert split_data(joined_data("data:a/b;base64,", data)) == ("data:a/b;base64,", data)


def test_base64_with_padding_in_the_middle_is_rejected() -> None:
    text = "A" * 262_142 + "==" + "AAAA"
    assert split_data(text) is None


def test_the_media_type_follows_from_the_bytes() -> None:
    kinds = [media_type(data) for data in (b"%PDF-1", b"RIFF0000WAVE", b"ID3", b"\xff\xfb", b"OggS", b"fLaC", b"<svg")]
    assert kinds == [
        "application/pdf", "audio/wav", "audio/mpeg", "audio/mpeg", "audio/ogg", "audio/flac",
        "application/octet-stream",
    ]  # fmt: skip


def test_client_content_round_trips_even_if_it_imitates_a_reference() -> None:
    ours = {"daybook.attachment": ["0" * 64, 1, "", ""]}
    words = [{"type": "text", "text": 'a \u201c\\"'}, {"type": "text", "text": "x" * LONG}]
    for parts in (words, [*words, {"type": "text", "text": ours}], [{"type": ours, "text": ""}], [ours], "a", None):
        assert json.loads(json.dumps(parts, cls=PartsEncoder), cls=PartsDecoder) == parts
