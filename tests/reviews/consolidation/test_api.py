"""/api/consolidations and the preview."""

import json
from typing import Any

import pytest

from gateway.models import Agent
from gateway.services import configuration_save, settings_check
from memories.api.export import export_lines
from memories.database.access import in_thread
from memories.errors import InvalidRequest
from memories.health import health_of_books
from memories.models import Book, Owner
from reviews.consolidation.answers import parse_extraction, parse_synthesis
from reviews.errors import AnswerUnusable
from reviews.models import ConsolidationRun, Extraction
from tests.conftest import Api
from tests.reviews.consolidation.answering_model import AnsweringModel
from tests.reviews.consolidation.rows import consolidate, request, run_slice, talk

URL = "/api/consolidations"


@pytest.fixture
def idle_sessions(alice: Owner, consolidation_on: None) -> None:
    for n in range(2):
        talk(alice, f"Fact {n}", hours_ago=n + 1)


async def test_a_rebuild_is_scheduled_and_listed(alice_api: Api, idle_sessions: None) -> None:
    status, run = await alice_api.post(URL, {"book": "main", "force": True})
    assert (status, run["object"], run["state"], run["force"]) == (202, "consolidation", "scheduled", True)
    status, again = await alice_api.post(URL, {"book": "main"})
    assert (status, again["id"]) == (202, run["id"])
    status, listed = await alice_api.get(URL)
    assert [row["id"] for row in listed["data"]] == [run["id"]]
    assert (await alice_api.get(f"{URL}?book=other"))[1]["data"] == []
    status, fetched = await alice_api.get(f"{URL}/{run['id']}")
    assert (status, fetched["phase"], fetched["sessions_done"], fetched["sessions_total"]) == (200, "extraction", 0, 0)


async def test_a_dry_run_lists_the_sessions_and_writes_nothing(alice_api: Api, idle_sessions: None) -> None:
    status, preview = await alice_api.post(URL, {"book": "main", "dry_run": True})
    assert (status, preview["object"], preview["sessions_total"], preview["synthesis"]) == (
        202,
        "consolidation_preview",
        2,
        True,
    )
    assert (preview["requests"], preview["cost"]) == (3, None)
    assert preview["tokens"] > sum(session["tokens"] for session in preview["sessions"]) > 0
    assert preview["text"].startswith("A rebuild would read 2 sessions: about ")
    assert not await in_thread(ConsolidationRun.objects.exists)
    assert not await in_thread(Extraction.objects.exists)


async def test_the_cost_is_shown_if_a_price_is_known(alice_api: Api, idle_sessions: None) -> None:
    prices = {"gpt-4o-mini": {"input": 1.0, "output": 10.0}}
    await in_thread(configuration_save, "prices", prices)
    _, preview = await alice_api.post(URL, {"book": "main", "dry_run": True})
    assert 0.05 < preview["cost"] < 0.1
    assert "about $0.0" in preview["text"]


async def test_a_dry_run_without_sessions_has_no_synthesis_and_no_cost(alice_api: Api, consolidation_on: None) -> None:
    _, preview = await alice_api.post(URL, {"book": "main", "dry_run": True, "force": True})
    assert (preview["synthesis"], preview["requests"], preview["tokens"], preview["cost"]) == (False, 0, 0, None)
    assert "$" not in preview["text"]


@pytest.mark.parametrize("dry_run", [True, False])
async def test_an_unknown_book_is_not_created(
    alice_api: Api, agent: Agent, consolidation_on: None, dry_run: bool
) -> None:
    status, answer = await alice_api.post(URL, {"book": "mian", "dry_run": dry_run})
    assert (status, answer["error"]["code"]) == (404, "not_found")
    assert answer["error"]["message"] == "There is no such book."
    assert not await in_thread(Book.objects.exists)


async def test_a_dry_run_does_not_create_the_book_of_an_agent(
    alice_api: Api, agent: Agent, consolidation_on: None
) -> None:
    await in_thread(Agent.objects.filter(pk=agent.pk).update, book="garden")
    for book in ("main", "garden"):
        status, preview = await alice_api.post(URL, {"book": book, "dry_run": True})
        assert (status, preview["book"], preview["sessions_total"], preview["synthesis"]) == (202, book, 0, False)
        assert not await in_thread(Book.objects.exists)
    status, run = await alice_api.post(URL, {"book": "garden"})
    assert (status, run["book"]) == (202, "garden")


async def test_a_request_while_consolidation_is_off_is_a_conflict(alice_api: Api, agent: Agent) -> None:
    status, body = await alice_api.post(URL, {"book": "main"})
    assert (status, body["error"]["code"]) == (409, "conflict")
    assert "memories.enabled" in body["error"]["message"]


async def test_a_run_can_be_stopped(alice_api: Api, idle_sessions: None) -> None:
    _, run = await alice_api.post(URL, {"book": "main"})
    status, stopped = await alice_api.post(f"{URL}/{run['id']}/stop")
    assert (status, stopped["state"]) == (200, "cancelled")


async def test_charlie_can_neither_see_nor_stop_alices_runs(
    alice_api: Api, charlie_api: Api, idle_sessions: None
) -> None:
    _, run = await alice_api.post(URL, {"book": "main"})
    assert (await charlie_api.get(URL))[1]["data"] == []
    assert (await charlie_api.get(f"{URL}/{run['id']}"))[0] == 404
    assert (await charlie_api.post(f"{URL}/{run['id']}/stop"))[0] == 404
    assert (await charlie_api.get(f"{URL}/no-id"))[0] == 404


@pytest.mark.parametrize("body", [{"book": ""}, {"book": "main", "whatever": 1}, {"force": "maybe"}])
async def test_invalid_bodies_are_refused(alice_api: Api, agent: Agent, body: dict[str, Any]) -> None:
    status, answer = await alice_api.post(URL, body)
    assert (status, answer["error"]["code"]) == (400, "invalid_request")


async def test_only_its_owner_can_forget_a_session(
    alice: Owner, alice_api: Api, charlie_api: Api, answering: AnsweringModel, consolidation_on: None
) -> None:
    session = await in_thread(talk, alice)
    await in_thread(_extraction_make, alice)
    assert (await charlie_api.post(f"/api/sessions/{session.pk}/forget"))[0] == 404
    assert await in_thread(lambda: Extraction.objects.get().raw_memory) != ""
    assert (await alice_api.post(f"/api/sessions/{session.pk}/forget"))[0] == 204
    assert await in_thread(lambda: Extraction.objects.get().raw_memory) == ""


def _extraction_make(owner: Owner) -> None:
    Extraction.objects.create(
        owner=owner, book=owner.books.get(), session=owner.sessions.get(), state="extracted", raw_memory="- A note"
    )


@pytest.mark.any_database
def test_a_finished_run_has_its_usage_and_prompts(
    alice: Owner, answering: AnsweringModel, consolidation_on: None
) -> None:
    talk(alice)
    run = consolidate(alice)
    assert (run.requests, run.tokens, run.phase) == (2, 200, "done")
    assert set(run.prompts) == {
        "memories/stage_one_system",
        "memories/stage_one_input",
        "memories/consolidation",
    }


def test_settings_accept_both_spellings_and_refuse_others() -> None:
    with pytest.raises(InvalidRequest, match=r"memories\.concurrency"):
        settings_check({"memories": {"concurrency": 0}})
    with pytest.raises(InvalidRequest, match=r"memories\.unknown"):
        settings_check({"memories": {"unknown": 1}})
    settings_check({"memories": {"minRolloutIdleHours": 0, "max_rollout_age_days": 7}})


@pytest.mark.parametrize(
    "text", ["", "[]", "null", '{"raw_memory": 1, "rollout_summary": ""}', '{"raw_memory": ""}', "{"]
)
def test_unusable_extractions(text: str) -> None:
    with pytest.raises(AnswerUnusable):
        parse_extraction(text)


def test_unusable_parts_of_a_synthesis() -> None:
    with pytest.raises(AnswerUnusable):
        parse_synthesis('{"memory_md": "x", "memory_summary": "y", "skills": "none"}')
    answer = parse_synthesis(
        '{"memory_md": "x", "memory_summary": "y", "skills": [1, {"name": "a"}, {"name": "b", "content": "c"}]}'
    )
    assert (answer.documents["skills/b/SKILL.md"], len(answer.documents), answer.dropped) == ("c", 3, 2)


def test_the_health_line_shows_the_progress_of_a_run(
    alice: Owner, answering: AnsweringModel, consolidation_on: None
) -> None:
    talk(alice)
    assert "Consolidation" not in _health(alice)["text"]
    run = request(alice)
    ConsolidationRun.objects.update(sessions_total=3, sessions_done=1)
    assert _health(alice)["text"].endswith("Consolidation is running: 1 of 3 sessions read.")
    assert _health(alice)["consolidation"]["sessions_done"] == 1
    run_slice(run)
    assert "Consolidation" not in _health(alice)["text"]
    assert _health(alice)["consolidation"]["state"] == "completed"


def _health(owner: Owner) -> dict[str, Any]:
    return health_of_books(owner.pk)[0]


@pytest.mark.any_database
def test_documents_and_notes_are_exported(
    alice: Owner, charlie: Owner, answering: AnsweringModel, consolidation_on: None
) -> None:
    session = talk(alice)
    consolidate(alice)
    rows = [json.loads(line) for line in export_lines(alice.pk)]
    found = {(row["type"], row.get("path") or row.get("session_id")) for row in rows}
    assert {("artifact", "MEMORY.md"), ("extraction", str(session.pk))} <= found
    assert "artifact" not in {json.loads(line)["type"] for line in export_lines(charlie.pk)}
