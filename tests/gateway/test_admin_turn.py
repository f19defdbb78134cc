"""/admin/gateway/run/…: the explanation of a turn, and who may see which part of it"""

import re
from html import unescape

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from gateway.admin.memory_uses import memory_uses
from gateway.admin.visibility import Visibility
from gateway.errors import UpstreamUnreachable
from gateway.models import Run, Session
from gateway.services import configuration_save
from memories.artifacts.store import artifact_put
from memories.database.access import in_thread
from memories.models import AuditEntry, Book, Memory, Owner, Revision, WriteOrigin
from memories.services import MemoryFields, Source, book_get_or_create, book_writing
from tests.admin_rows import row_url, session_make, staff_client
from tests.conftest import Api
from tests.factories import agent_make, memory_make
from tests.scripted_model import Says, ScriptedModel

STATEMENTS = 12  # two of them for the login, one for the audit log
QUESTION = "When do the backups run at night?"
ADD = ("add_memory", '{"content": "Backups run at 02:30.", "target": "memory", "category": "fact"}')


def words_of(client: Client, path: str) -> str:
    """Return the text of a page without tags."""
    answer = client.get(path)
    assert answer.status_code == 200
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", answer.content.decode())).split())


@pytest.fixture
async def run(alice: Owner, session: Session, alice_api: Api, model: ScriptedModel) -> Run:
    """A turn with one injected memory, a tool call that adds another one, and an answer in Markdown."""
    await in_thread(memory_make, alice, "Likes **short** answers.")
    model.script(Says(pieces=("One moment.",), calls=(ADD,)), "At **02:30**, every night.")
    status, _ = await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": QUESTION})
    assert status == 200
    return await in_thread(Run.objects.get)


async def page_words(client: Client, run: Run) -> str:
    return await in_thread(lambda: words_of(client, row_url(run)))


def missing_or_misplaced(words: str, parts: list[str]) -> list[str]:
    """Return the parts that are missing or out of order."""
    position, misplaced = 0, []
    for part in parts:
        found = words.find(part, position)
        if found < 0:
            misplaced.append(part)
        else:
            position = found + len(part)
    return misplaced


async def test_the_parts_of_a_turn_are_in_chronological_order(run: Run, root: Client) -> None:
    parts = [
        "20 tokens: 14 read, 6 written",
        "No price is set for this model",
        "Question " + QUESTION,
        "What it was given",
        "You are terse.",
        "In the snapshot memory 1 Likes **short** answers.",
        "In every answer of this session.",
        "As it was then: version 1",
        "What it did",
        "Step 1",
        "One moment.",
        "Called add_memory",
        "content Backups run at 02:30.",
        "Result",
        "Step 2",
        "Answered, 26 characters",
        "What its tools wrote The agent added 1 memory",
        "Added memory 2 Backups run at 02:30.",
        "Answer",
        "At 02:30 , every night.",
        "Raw data",
    ]
    assert missing_or_misplaced(await page_words(root, run), parts) == []


@pytest.mark.any_database
async def test_the_snapshot_is_shown_exactly_as_sent(run: Run, root: Client, model: ScriptedModel) -> None:
    sent = model.calls[0].messages[0]["content"]
    answer = await in_thread(lambda: root.get(row_url(run)))
    (shown,) = [text["text"] for text in answer.context["turn"]["given"]["texts"] if text["title"] == "Snapshot"]
    assert sent == f"You are terse.\n\n{shown}"


async def test_a_memory_is_shown_in_the_version_of_that_time(run: Run, root: Client, alice: Owner) -> None:
    def change() -> None:
        with book_writing(Book.objects.get(), Source(actor="user:1", origin=WriteOrigin.USER)) as writer:
            writer.update(1, MemoryFields(content="Likes long answers."))

    await in_thread(change)
    answer = await in_thread(lambda: root.get(row_url(run)))
    (given,) = answer.context["turn"]["given"]["memories"]
    first = await in_thread(lambda: Revision.objects.get(memory__number=1, version=1))
    assert (given["words"], given["version"]) == ("Likes **short** answers.", 1)
    assert given["revision_url"] == row_url(first)
    assert "Likes long answers." not in answer.content.decode()


async def test_an_erased_memory_is_mentioned(run: Run, root: Client) -> None:
    await in_thread(lambda: Memory.objects.filter(number=1).delete())
    words = await page_words(root, run)
    assert "This memory has been erased since." in words
    assert "without 1 that has been erased since." in words


@pytest.mark.any_database
async def test_the_cost_uses_the_configured_prices(run: Run, root: Client) -> None:
    await in_thread(lambda: configuration_save("prices", {"scripted": {"input": 1_000_000, "output": 2_000_000}}))
    assert "Cost $26.00" in await page_words(root, run)


@pytest.mark.any_database
async def test_a_later_change_of_the_settings_is_mentioned(run: Run, root: Client) -> None:
    await in_thread(lambda: agent_make(instructions="Be kind."))
    assert "the settings have been changed since" in await page_words(root, run)


async def test_memory_guidance_is_shown_with_the_summary_of_that_time(
    alice: Owner, session: Session, alice_api: Api, model: ScriptedModel, root: Client
) -> None:
    def prepare() -> None:
        configuration_save("memories", {"enabled": True})
        book = book_get_or_create(alice.pk, "main")
        artifact_put(book, "memory_summary.md", "Alice keeps backups.", Source(actor="user:1", origin=WriteOrigin.USER))

    await in_thread(prepare)
    model.script("Yes.")
    await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": "Hi"})
    assert "Alice keeps backups." in model.calls[0].messages[0]["content"]
    source = Source(actor="user:1", origin=WriteOrigin.USER)
    await in_thread(lambda: artifact_put(Book.objects.get(), "memory_summary.md", "Something else.", source))
    words = await page_words(root, await in_thread(Run.objects.get))
    assert "from version 1 of memory_summary.md" in words
    assert "Alice keeps backups." in words


async def test_an_error_is_shown_as_text_and_code(
    session: Session, alice_api: Api, model: ScriptedModel, root: Client
) -> None:
    model.script(UpstreamUnreachable("The model server could not be reached."))
    await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": "Hi"})
    run = await in_thread(Run.objects.get)
    words = await page_words(root, run)
    assert "The model server could not be reached." in words
    assert str(run.error["code"]) in words
    assert "the steps of a failed turn are not stored" in words


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("request", "Stopped by its owner."),
        ("client", "Stopped: the client disconnected."),
        ("process", "Interrupted: Daybook was restarted, or its process went away."),
    ],
)
def test_the_reason_for_a_stop_is_shown(root: Client, by: str, words: str) -> None:
    session_make(turns=1)
    Run.objects.update(state="stopped", trace={"stopped_by": by})
    assert words in words_of(root, row_url(Run.objects.get()))


def test_attempts_show_which_upstream_failed_and_which_answered(root: Client) -> None:
    session_make(turns=1)
    attempts = [
        {"upstream": "main", "model": "large", "fault": "overload", "seconds": 0.5},
        {"upstream": "spare", "model": "small", "fault": "", "seconds": 1.25},
    ]
    Run.objects.update(trace={"steps": 1, "attempts": attempts})
    words = words_of(root, row_url(Run.objects.get()))
    assert (
        missing_or_misplaced(
            words, ["large of main was overloaded after 0.5 s.", "small of spare answered after 1.2 s."]
        )
        == []
    )


def test_old_and_empty_traces_are_tolerated(root: Client) -> None:
    session_make(turns=1)
    run = Run.objects.get()
    for trace in ({}, {"recall": {"embedding": "ok", "thread": {"state": "failed", "kind": "KeyError"}}}, {"steps": 3}):
        Run.objects.update(trace=trace, recalled=[{"memory_id": "12", "lane": "old"}, {}, "text"], usage={})
        assert "Question 1" in words_of(root, row_url(run))
    assert "3 more" not in words_of(root, row_url(run))


async def test_without_permission_for_conversations_only_figures_are_shown(run: Run) -> None:
    await in_thread(lambda: Run.objects.update(error={"code": "upstream_error", "message": "Said: at night"}))
    client = await in_thread(lambda: staff_client(may=("gateway.view_run",)))
    words = await page_words(client, run)
    assert "20 tokens: 14 read, 6 written" in words
    assert "33 characters." in words
    assert "Called add_memory" in words
    page = (await in_thread(lambda: client.get(row_url(run)))).content.decode()
    hidden = ("night", "backups", "Backups", "02:30", "One moment", "short", "at night", "When do")
    assert [part for part in hidden if part in page] == []
    listed = (await in_thread(lambda: client.get("/admin/gateway/run/"))).content.decode()
    assert [part for part in hidden if part in listed] == []


async def test_an_auditor_with_runs_sees_memories_but_no_conversation(run: Run) -> None:
    def auditor() -> Client:
        client = staff_client(auditor=True)
        user = User.objects.get(username="bob")
        user.user_permissions.add(Permission.objects.get(codename="view_run"))
        return client

    words = await page_words(await in_thread(auditor), run)
    assert "Likes **short** answers." in words
    assert "Added memory 2 Backups run at 02:30." in words
    assert QUESTION not in words
    assert "One moment." not in words


async def test_opening_somebody_elses_turn_is_audited_once(run: Run, root: Client) -> None:
    await page_words(root, run)
    entry = await in_thread(lambda: AuditEntry.objects.get(action="view"))
    assert (entry.kind, entry.object_id, entry.owner) == ("run", str(run.pk), "alice")


async def test_a_turn_is_found_by_its_request_id(run: Run, root: Client) -> None:
    for wanted in (run.request_id, str(run.pk)):
        listed = await in_thread(lambda wanted=wanted: root.get("/admin/gateway/run/", {"q": wanted}))
        assert list(listed.context["cl"].result_list) == [run]


@pytest.mark.any_database
async def test_the_page_takes_a_fixed_number_of_statements(
    run: Run, root: Client, alice: Owner, session: Session, alice_api: Api, model: ScriptedModel
) -> None:
    def statements(shown: Run) -> int:
        root.get(row_url(shown))
        with CaptureQueriesContext(connection) as queries:
            assert root.get(row_url(shown)).status_code == 200
        return len(queries)

    few = await in_thread(lambda: statements(run))
    for number in range(5):
        await in_thread(lambda number=number: memory_make(alice, f"Fact {number}."))
    adds = [("add_memory", f'{{"content": "Thing {number}."}}') for number in range(4)]
    model.script(Says(calls=tuple(adds[:2])), Says(calls=tuple(adds[2:])), "Done.")
    await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": "More"})
    more = await in_thread(lambda: Run.objects.order_by("-pk").first())
    assert (few, await in_thread(lambda: statements(more))) == (STATEMENTS, STATEMENTS)


@pytest.mark.any_database
async def test_the_memory_page_lists_the_turns_that_used_it(run: Run, root: Client) -> None:
    memory = await in_thread(lambda: Memory.objects.get(number=1))
    path = row_url(memory)
    answer = await in_thread(lambda: root.get(path))
    (use,) = answer.context["uses"]
    assert (use["url"], use["words"], use["why"]) == (
        row_url(run),
        "Turn 1 of When do the backups run at night?",
        "In every answer of this session.",
    )
    other = await in_thread(lambda: Memory.objects.get(number=2))
    assert "None of the newest turns." in await in_thread(lambda: words_of(root, row_url(other)))


async def test_without_permission_for_conversations_uses_of_a_memory_have_no_title(run: Run) -> None:
    await in_thread(lambda: Run.objects.update(recalled=[{"memory_id": "1", "lane": "long_term", "why": "“night”"}]))
    client = await in_thread(lambda: staff_client(may=("memories.view_memory", "gateway.view_run")))
    memory = await in_thread(lambda: Memory.objects.get(number=1))
    answer = await in_thread(lambda: client.get(row_url(memory)))
    assert [(use["words"], use["why"]) for use in answer.context["uses"]] == [("Turn 1", "")]


async def test_finding_the_uses_of_a_memory_takes_three_statements(run: Run) -> None:
    memory = await in_thread(lambda: Memory.objects.get(number=1))
    visible = Visibility(words=True, memories=True, changes=True, documents=True, reviews=True)

    def statements() -> int:
        with CaptureQueriesContext(connection) as queries:
            memory_uses(memory, visible)
        return len(queries)

    assert await in_thread(statements) == 3
    await in_thread(lambda: session_make(memory.owner, turns=20))
    assert await in_thread(statements) == 3
