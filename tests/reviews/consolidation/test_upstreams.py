"""Which upstream a consolidation uses, and how a missing choice is reported."""

from collections import Counter
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from pytest_django.fixtures import Settings

from config.doctor import findings
from gateway.agents.configuration import consolidation_settings
from gateway.models import Agent
from gateway.services import configuration_save
from memories.database.access import in_thread
from memories.errors import Conflict
from memories.models import Owner
from reviews.consolidation.requests import Trigger
from reviews.consolidation.selection import due_books
from reviews.models import ConsolidationRun
from tests.conftest import Api
from tests.factories import agent_make
from tests.pages import client_of
from tests.reviews.consolidation.answering_model import AnsweringModel, session_of
from tests.reviews.consolidation.rows import book_of, consolidate, request, run_slice, settings_make, talk

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("consolidation_on")]
ADDRESS = {"url": "http://127.0.0.1:9/v1", "key": ""}
REASON = "The book main is shared by agents of different upstreams (default, local)."


@pytest.fixture(autouse=True)
def _two_upstreams(settings: Settings) -> None:
    settings.DAYBOOK_UPSTREAMS = {"default": ADDRESS, "local": ADDRESS}


@pytest.fixture
def local(db: None) -> Agent:
    return agent_make("private", upstream="local", model="llama")


def count_requests(answering: AnsweringModel) -> Counter[tuple[str, str, str]]:
    """Count the requests by kind, upstream, and model."""
    kinds = [("extraction" if session_of(call) else "synthesis", call) for call in answering.calls]
    return Counter((kind, call.upstream, call.model) for kind, call in kinds)


@pytest.mark.any_database
def test_extractions_and_synthesis_use_the_agents_upstream(
    alice: Owner, local: Agent, answering: AnsweringModel
) -> None:
    configuration_save("model_roles", {"default": "big", "smol": "small"})
    talk(alice, agent=local)
    assert consolidate(alice).state == "completed"
    assert count_requests(answering) == {("extraction", "local", "llama"): 1, ("synthesis", "local", "llama"): 1}


@pytest.mark.any_database
def test_roles_may_set_upstream_and_model(alice: Owner, answering: AnsweringModel) -> None:
    configuration_save("model_roles", {"default": "local/meta-llama/Llama-3", "smol": "small"})
    talk(alice)
    assert consolidate(alice).state == "completed"
    assert count_requests(answering) == {
        ("extraction", "local", "meta-llama/Llama-3"): 1,
        ("synthesis", "default", "small"): 1,
    }


@pytest.mark.any_database
def test_a_shared_book_is_consolidated_with_the_configured_upstream(
    alice: Owner, local: Agent, answering: AnsweringModel
) -> None:
    settings_make(upstream="local")
    configuration_save("model_roles", {"default": "big", "smol": "small"})
    talk(alice)
    talk(alice, agent=local)
    assert consolidate(alice).state == "completed"
    assert count_requests(answering) == {("extraction", "local", "llama"): 2, ("synthesis", "local", "llama"): 1}


def test_a_shared_book_is_not_consolidated_without_a_configured_upstream(
    alice: Owner, agent: Agent, local: Agent, answering: AnsweringModel
) -> None:
    talk(alice, agent=local)
    with pytest.raises(Conflict, match=r"memories\.upstream names the upstream") as refused:
        request(alice)
    assert REASON in str(refused.value)
    assert due_books(consolidation_settings(), max_books=5) == []
    assert not ConsolidationRun.objects.exists()
    assert answering.calls == []


def test_skipped_books_do_not_delay_others(alice: Owner, agent: Agent, local: Agent) -> None:
    talk(alice, agent=local, hours_ago=20)
    talk(alice, agent=agent_make("coder", book="code"), hours_ago=30)
    due = due_books(consolidation_settings(), max_books=1)
    assert [book.name for book in due] == ["code"]


def test_a_run_is_cancelled_if_its_book_becomes_shared(alice: Owner, answering: AnsweringModel) -> None:
    talk(alice)
    run = request(alice)
    agent_make("private", upstream="local")
    assert run_slice(run).state == "cancelled"
    assert REASON in run.error["message"]
    assert answering.calls == []


@pytest.mark.any_database
def test_a_run_fails_if_its_book_becomes_shared_meanwhile(alice: Owner, answering: AnsweringModel) -> None:
    talk(alice)
    first = answering.on_extraction

    def share_meanwhile(session: str, call: Any) -> Any:
        agent_make("private", upstream="local")
        return first(session, call)

    answering.on_extraction = share_meanwhile
    run = run_slice(request(alice, trigger=Trigger.SCHEDULE))
    assert (run.state, [kind for kind, *_ in count_requests(answering)]) == ("failed", ["extraction"])
    assert REASON in run.error["message"]


@pytest.mark.any_database
async def test_the_api_shows_the_reason(
    alice: Owner, alice_api: Api, agent: Agent, local: Agent, answering: AnsweringModel
) -> None:
    await in_thread(lambda: talk(alice, agent=local))
    status, refused = await alice_api.post("/api/consolidations", {"book": "main"})
    assert (status, refused["error"]["code"]) == (409, "conflict")
    assert REASON in refused["error"]["message"]
    _, preview = await alice_api.post("/api/consolidations", {"book": "main", "dry_run": True})
    assert (preview["sessions"], preview["requests"], preview["cost"]) == ([], 0, None)
    assert REASON in preview["obstacle"]
    assert REASON in preview["text"]
    _, health = await alice_api.get("/api/memories/health")
    assert REASON in health["data"][0]["consolidation_obstacle"]
    assert REASON in health["data"][0]["text"]
    await in_thread(settings_make, upstream="local")
    _, health = await alice_api.get("/api/memories/health")
    assert health["data"][0]["consolidation_obstacle"] is None


def test_pages_the_command_and_doctor_show_the_reason(
    alice: Owner, bob: Owner, agent: Agent, local: Agent, settings: Settings
) -> None:
    talk(alice, agent=local)
    client = client_of(alice)
    for page in ("/memories/", "/reviews/"):
        assert REASON in client.get(page).content.decode()
    client.force_login(bob.user)
    page = client.get(f"/admin/memories/book/consolidate/?book={book_of(alice).pk}").content.decode()
    assert REASON in page
    out = StringIO()
    call_command("consolidate", owner="alice", book="main", dry_run=True, stdout=out)
    assert REASON in out.getvalue()
    settings.DAYBOOK_UPSTREAMS = {}
    found = {finding.check: finding.text for finding in findings()}
    assert REASON in found["book main"]
    assert found["agent private"] == "No upstream is called local. Set DAYBOOK_UPSTREAM_LOCAL_URL."
