"""Conversations that clients resend are placed in their own sessions, over HTTP with a scripted model, and never in
another conversation's session."""

import json
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from gateway.models import Agent, Run, Session
from memories.database.access import in_thread
from memories.errors import UpstreamError
from memories.models import Owner
from tests.clients.recorded import PATHS, Case, Placement, Score, cases, play
from tests.conftest import Api
from tests.factories import agent_make, key_make
from tests.scripted_model import Says, ScriptedModel

People = Mapping[str, Api]
CASES = list(cases())
OK = 200
MIN_APART = 15


def _script(model: ScriptedModel, answer: Any) -> None:
    if isinstance(answer, str):
        model.script(answer)
    elif answer.get("fails"):
        model.script(UpstreamError("no"))
    else:
        calls = tuple((name, arguments) for name, arguments in answer["calls"])
        model.script(Says(pieces=(answer["text"],) if answer["text"] else (), calls=calls))


async def _send(
    people: People, model: ScriptedModel, case: Case, request: Mapping[str, Any], body: dict[str, Any]
) -> Placement:
    api = people[request.get("key", "alice")]
    _script(model, request["answer"])
    body = {"model": request.get("agent", "assistant"), **body}
    response = await api.raw("POST", PATHS[case.api], body, **request.get("headers", {}))
    run_id = response.headers.get("x-daybook-run")
    if run_id is None and response.status_code == OK:
        return Placement(session="", parent="", turn=0, rule="")
    runs = Run.objects.select_related("session")
    run = await in_thread(partial(runs.get, pk=run_id) if run_id else partial(runs.latest, "id"))
    answer = json.loads(response.content)
    calls = [call["id"] for choice in answer.get("choices", ()) for call in choice["message"].get("tool_calls") or ()]
    return _placement(run, calls)


def _placement(run: Run, calls: Sequence[str] = ()) -> Placement:
    parent, rule = str(run.session.parent_id), run.trace.get("session", {}).get("rule", "")
    return Placement(session=str(run.session_id), parent=parent, turn=run.turn, rule=rule, calls=calls)


@pytest.fixture
def people(alice: Owner, charlie: Owner, agent: Agent) -> People:
    agent_make("other")
    return {name: Api(key_make(owner)[1]) for name, owner in (("alice", alice), ("charlie", charlie))}


@pytest.mark.parametrize("case", [case for case in CASES if case.alone], ids=str)
async def test_a_case_alone(case: Case, people: People, model: ScriptedModel) -> None:
    score = Score()
    await play(case, partial(_send, people, model), score)
    assert (score.merged, score.wrong) == ([], [])
    assert score.right == score.requests > 0


async def test_all_cases_of_one_person_together(
    people: People, model: ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    """Play all other cases as one person, so that each could be confused with the sessions of all others."""
    score = Score()
    cases_together = [case for case in CASES if not case.alone]
    for case in cases_together:
        await play(case, partial(_send, people, model), score)
    with capsys.disabled():
        sys.stdout.write(f"\nConversations of clients, {len(cases_together)} of {len(CASES)} cases at once: {score}\n")
    assert (score.merged, score.wrong) == ([], [])
    assert score.right == score.requests


def test_enough_cases_must_stay_apart() -> None:
    assert sum(case.apart for case in CASES) >= MIN_APART
    assert len({case.client for case in CASES}) >= MIN_APART


async def test_a_case_with_two_keys_has_sessions_of_two_owners(people: People, model: ScriptedModel) -> None:

    case = next(case for case in CASES if any("key" in request for request in case.requests))
    await play(case, partial(_send, people, model), Score())
    owners = await in_thread(lambda: {(row.owner_id, row.pk) for row in Session.objects.all()})
    assert len({owner for owner, _ in owners}) == len(owners) == 2
