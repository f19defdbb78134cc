"""/admin/gateway/agent/…/try/: send one message to an agent without storing the conversation"""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from gateway.admin import agents
from gateway.errors import UpstreamUnreachable
from gateway.models import Agent, Message, Run, Session
from memories.models import AuditEntry, Memory, Revision
from tests.admin_rows import memory_make, row_url, staff_client
from tests.factories import agent_make
from tests.scripted_model import Hangs, Says, ScriptedModel, calls, says

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


def ask(client: Client, agent: Agent, message: str = "Hello?", **headers: Any) -> Any:
    return client.post(row_url(agent, "try"), {"message": message}, headers=headers)


def test_the_agent_page_has_the_try_it_form(root: Client, agent: Agent) -> None:
    page = root.get(row_url(agent)).content.decode()
    assert row_url(agent, "try") in page
    assert "Sends one message to the saved agent and waits at most 60 seconds." in page
    assert "Try it" not in root.get("/admin/gateway/agent/add/").content.decode()


def test_the_answer_is_shown_with_its_model_tokens_and_time(root: Client, agent: Agent, model: ScriptedModel) -> None:
    model.script("I am <b>well</b>.")
    answer = ask(root, agent, **HTMX).content.decode()
    assert "I am &lt;b&gt;well&lt;/b&gt;." in answer
    assert "<dd>scripted</dd>" in answer
    assert "10 (7 in, 3 out)" in answer
    assert "0.0 s" in answer
    assert "<html" not in answer


def test_the_prompt_is_that_of_a_temporary_session(root: Client, model: ScriptedModel) -> None:
    agent = agent_make(model="tiny", instructions="You are terse.")
    memory_make("Likes tea.")
    model.script("Yes.")
    ask(root, agent, "Hello?")
    (call,) = model.calls
    assert call.model == "tiny"
    assert call.messages == (
        {"role": "system", "content": "You are terse."},
        {"role": "user", "content": "Hello?"},
    )
    assert call.tools == ()


def test_only_an_audit_entry_is_stored(root: Client, agent: Agent, model: ScriptedModel) -> None:
    memory_make("Likes tea.")
    before = (Memory.objects.get().usage_count, Revision.objects.count(), agent.version)
    model.script("The key is 1234.")
    with CaptureQueriesContext(connection) as queries:
        ask(root, agent, "What is the key?")
    written = [q["sql"].split('"')[1] for q in queries if q["sql"].split()[0] in {"INSERT", "UPDATE", "DELETE"}]
    assert written == ["memories_auditentry"]
    assert [kind.objects.count() for kind in (Session, Run, Message)] == [0, 0, 0]
    agent.refresh_from_db()
    assert (Memory.objects.get().usage_count, Revision.objects.count(), agent.version) == before
    entry = AuditEntry.objects.get(kind="agent")
    assert (entry.object_id, entry.note) == (str(agent.pk), "Tried.")


def test_without_javascript_the_whole_page_is_returned_with_the_message(
    root: Client, agent: Agent, model: ScriptedModel
) -> None:
    model.script("Well.")
    page = ask(root, agent, "How are you?").content.decode()
    assert all(words in page for words in ("<html", "Well.", "How are you?</textarea>", row_url(agent)))


def test_an_upstream_error_is_shown(root: Client, agent: Agent, model: ScriptedModel) -> None:
    model.script(UpstreamUnreachable("The model server could not be reached."))
    answer = ask(root, agent, **HTMX)
    assert answer.status_code == 200
    assert "The model server could not be reached. <code>upstream_error</code>" in answer.content.decode()


def test_a_trial_times_out(root: Client, agent: Agent, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "TRIAL_SECONDS", 0.5)
    model.script(Hangs())
    answer = ask(root, agent, **HTMX).content.decode()
    assert "The model server took too long to answer. <code>upstream_timeout</code>" in answer


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("", "Type a message first."),
        ("  \n ", "Type a message first."),
        ("x" * 8001, "A message to try has at most 8,000 characters."),
    ],
    ids=["empty", "blank", "long"],
)
def test_an_empty_or_too_long_message_is_not_sent(
    root: Client, agent: Agent, model: ScriptedModel, message: str, words: str
) -> None:
    assert words in ask(root, agent, message, **HTMX).content.decode()
    assert model.calls == []
    assert not AuditEntry.objects.filter(kind="agent").exists()


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (says(), "The model gave an empty answer."),
        (calls(("weather", "{}")), "<dd>tool_calls</dd>"),
        (Says(pieces=("Yes.",), usage={}), "Not reported"),
        (Says(pieces=("And then",), finish_reason="length"), "<dd>length</dd>"),
    ],
    ids=["no words", "a tool call", "no usage", "cut off"],
)
def test_unusual_answers_are_explained(
    root: Client, agent: Agent, model: ScriptedModel, step: Says, words: str
) -> None:
    model.script(step)
    assert words in ask(root, agent, **HTMX).content.decode()


def test_trying_an_agent_requires_permission_to_change_it(agent: Agent, model: ScriptedModel) -> None:
    viewer = staff_client(may=("gateway.view_agent",))
    page = viewer.get(row_url(agent))
    assert page.status_code == 200
    assert "Try it" not in page.content.decode()
    assert ask(viewer, agent).status_code == 403
    assert ask(Client(), agent).status_code == 302
    assert model.calls == []


def test_a_trial_requires_post_an_existing_agent_and_a_csrf_token(
    root: Client, agent: Agent, model: ScriptedModel
) -> None:
    assert root.get(row_url(agent, "try")).status_code == 405
    gone = "01890000-0000-7000-8000-000000000000"
    assert root.post(f"/admin/gateway/agent/{gone}/try/", {"message": "Hello?"}).status_code == 404
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = root.cookies
    assert ask(strict, agent).status_code == 403
    assert model.calls == []
