"""Attachments of messages: kept on edits, shown safely on the page, and limited in prompts"""

import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from gateway.attachments.decoding import PICTURES, media_type
from gateway.attachments.in_message import attached_parts, first_text, name_of
from gateway.attachments.reading import bytes_of
from gateway.models import Agent, Message, Run, Session
from gateway.runs import window
from gateway.runs.closing import close
from gateway.runs.context import RunOutput
from gateway.runs.native import open_native
from memories.database.access import in_thread
from memories.ids import uuid7
from memories.models import Owner
from prompts.conversation import ATTACHMENT_OMITTED
from tests.conftest import Api
from tests.factories import caller_make, session_make
from tests.gateway.attachments import PNG, TEXT, picture
from tests.pages import client_of, html_of
from tests.scripted_model import ScriptedModel

FILE = {"type": "text", "text": "[File notes.txt]\nBuy tea."}
PDF = {"type": "file", "file": {"filename": "paper.pdf", "file_data": "data:application/pdf;base64,"}}


def test_a_message_is_split_into_text_and_attachments() -> None:
    assert (first_text([TEXT, picture(), FILE]), attached_parts([TEXT, picture(), FILE])) == (
        "What is this?", [picture(), FILE],
    )  # fmt: skip
    assert (first_text([FILE]), attached_parts([FILE])) == ("", [FILE])
    assert (first_text([]), list(attached_parts([]))) == ("", [])
    assert [name_of(part) for part in (FILE, PDF, picture(), {"type": "input_audio"}, {"type": "odd"})] == [
        "notes.txt", "paper.pdf", "Image", "Sound", "File",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF0000WEBP", "image/webp"),
    ],
)
def test_the_type_of_a_picture_follows_from_its_bytes(data: bytes, kind: str) -> None:
    assert bytes_of(uuid7(), picture(data, "text/html")) == data
    assert media_type(data) == kind


@pytest.mark.parametrize(
    "part",
    [
        picture(b"<svg onload=alert(1)>", "image/svg+xml"),
        picture(b"<script>alert(1)</script>", "image/png"),
        picture(b"", "image/png"),
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,%%%"}},
        {"type": "image_url", "image_url": {"url": 5}},
        {"type": "image_url", "image_url": None},
        {"type": "image_url"},
        TEXT,
        {},
    ],
)
def test_other_content_is_not_shown_as_a_picture(part: dict[str, Any]) -> None:
    data = bytes_of(uuid7(), part)
    assert not isinstance(data, bytes) or media_type(data) not in PICTURES


@pytest.fixture
def message(alice: Owner, agent: Agent) -> Message:
    session = session_make(alice, agent, title="Pictures")
    parts = [TEXT, picture(), PDF, picture(b"<svg/>")]
    return Message.objects.create(owner=alice, session=session, seq=1, role="user", text="What is this?", parts=parts)


def address(message: Message, index: int) -> str:
    return reverse("chat-attachment", kwargs={"session_id": message.session_id, "seq": message.seq, "index": index})


def test_the_page_shows_pictures_and_names(alice: Owner, message: Message) -> None:
    page = html_of(client_of(alice), f"/c/{message.session_id}/")
    assert f'<img src="{address(message, 1)}"' in page
    assert "paper.pdf" in page
    assert "base64" not in page


@pytest.mark.any_database
def test_a_picture_is_served_with_restrictive_headers(alice: Owner, message: Message) -> None:
    answer = client_of(alice).get(address(message, 1))
    assert (answer.status_code, answer.content, answer["Content-Type"]) == (200, PNG, "image/png")
    assert (answer["X-Content-Type-Options"], answer["Content-Security-Policy"]) == (
        "nosniff", "default-src 'none'; sandbox",
    )  # fmt: skip
    assert "no-store" in answer["Cache-Control"]
    for index in (0, 2, 3, 4, 10**12):
        assert client_of(alice).get(address(message, index)).status_code == 404, index


def test_somebody_elses_picture_is_not_found(charlie: Owner, message: Message) -> None:
    assert client_of(charlie).get(address(message, 1)).status_code == 404


async def test_an_edited_message_keeps_its_attachments_on_request(
    alice_api: Api, session: Session, model: ScriptedModel
) -> None:
    model.script("A dot.", "A red dot.", "Nothing.")
    turns = f"/api/sessions/{session.pk}/turns"
    _, turn = await alice_api.post(turns, {"content": [TEXT, picture(), FILE]})
    assert (await in_thread(Session.objects.get)).title == "What is this?"
    edited = {"content": "Its colour?", "replaces": turn["id"], "keep_attached": True}
    status, turn = await alice_api.post(turns, edited)
    assert (status, model.calls[1].messages[-1]["content"]) == (
        200,
        [{"type": "text", "text": "Its colour?"}, picture(), FILE],
    )
    await alice_api.post(turns, {"content": "And without?", "replaces": turn["id"]})
    assert model.calls[2].messages[-1]["content"] == "And without?"
    newest = await in_thread(Message.objects.filter(role="user").order_by("-seq").first)
    assert newest is not None
    assert newest.parts is None


async def test_only_the_newest_attachments_are_sent_again(
    alice_api: Api, session: Session, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window, "ATTACHED_CHARACTERS", 2 * len(json.dumps(picture())))
    turns = f"/api/sessions/{session.pk}/turns"
    model.script(*["Fine."] * 4)
    for number in range(3):
        await alice_api.post(turns, {"content": [{"type": "text", "text": f"Picture {number}"}, picture()]})
    await alice_api.post(turns, {"content": [picture()]})
    said = [message["content"] for message in model.calls[3].messages if message["role"] == "user"]
    assert said == [
        f"Picture 0\n\n{ATTACHMENT_OMITTED}",
        [{"type": "text", "text": "Picture 1"}, picture()],
        [{"type": "text", "text": "Picture 2"}, picture()],
        [picture()],
    ]
    kept = await in_thread(
        lambda: list(Message.objects.filter(role="user").order_by("seq").values_list("text", "parts"))
    )
    assert kept[0] == ("Picture 0", [{"type": "text", "text": "Picture 0"}, picture()]), (
        "the transcript keeps the picture"
    )


async def test_only_attachments_of_the_newest_messages_are_read(
    alice_api: Api, session: Session, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window, "ATTACHED_MESSAGES", 1)
    turns = f"/api/sessions/{session.pk}/turns"
    model.script(*["Fine."] * 3)
    for _ in range(2):
        await alice_api.post(turns, {"content": [picture()]})
    await alice_api.post(turns, {"content": "And?"})
    said = [message["content"] for message in model.calls[2].messages if message["role"] == "user"]
    assert said == [ATTACHMENT_OMITTED, [picture()], "And?"]


def test_attachments_of_earlier_messages_are_read_after_the_lock(alice: Owner, agent: Agent) -> None:
    session = session_make(alice, agent)
    caller = caller_make(alice)
    for number in range(2):
        first = open_native(
            caller, session_id=session.pk, content=[TEXT, picture()], replaces=None, request_id=str(number)
        )
        close(first, RunOutput(text="A cat."), state=Run.State.COMPLETED)
    with CaptureQueriesContext(connection) as found:
        context = open_native(caller, session_id=session.pk, content="And now?", replaces=None, request_id="r")
    said = [query["sql"] for query in found]
    reads = [place for place, sql in enumerate(said) if sql.startswith('SELECT "gateway_message"."parts"')]
    written = max(place for place, sql in enumerate(said) if sql.startswith(("INSERT", "UPDATE")))
    assert len(reads) == 2
    [window] = [sql for sql in said if "has_parts" in sql]
    assert '"gateway_message"."created_at"' not in window, "it is stored after the parts"
    assert 'CASE WHEN "gateway_message"."parts" IS NULL' in window, "SQLite reads every returned column completely"
    assert min(reads) > written
    assert [type(message["content"]) for message in context.messages] == [list, list, str]
