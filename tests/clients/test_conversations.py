"""Conversations as clients resend them are put into the sessions that they belong to, over HTTP with a scripted model:
all of them, and none into the session of another."""

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
from tests.clients.recorded import PATHS, Case, Placed, Score, cases, play
from tests.conftest import Api
from tests.factories import agent_make, key_make
from tests.scripted_model import Says, ScriptedModel

People = Mapping[str, Api]
CASES = list(cases())
OK = 200
MOST_APART = 15


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
) -> Placed:
    api = people[request.get("key", "alice")]
    _script(model, request["answer"])
    given = {"model": request.get("agent", "assistant"), **body}
    response = await api.raw("POST", PATHS[case.api], given, **request.get("headers", {}))
    run_id = response.headers.get("x-daybook-run")
    if run_id is None and response.status_code == OK:
        return Placed(session="", parent="", turn=0, rule="")
    found = Run.objects.select_related("session")
    run = await in_thread(partial(found.get, pk=run_id) if run_id else partial(found.latest, "id"))
    answer = json.loads(response.content)
    calls = [call["id"] for choice in answer.get("choices", ()) for call in choice["message"].get("tool_calls") or ()]
    return _placed(run, calls)


def _placed(run: Run, calls: Sequence[str] = ()) -> Placed:
    parent, rule = str(run.session.parent_id), run.trace.get("session", {}).get("rule", "")
    return Placed(session=str(run.session_id), parent=parent, turn=run.turn, rule=rule, calls=calls)


@pytest.fixture
def people(alice: Owner, charlie: Owner, agent: Agent) -> People:
    agent_make("other")
    return {name: Api(key_make(owner)[1]) for name, owner in (("alice", alice), ("charlie", charlie))}


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_each_request_is_in_its_session(case: Case, people: People, model: ScriptedModel) -> None:
    score = Score()
    await play(case, partial(_send, people, model), score)
    assert (score.merged, score.wrong) == ([], [])
    assert score.right == score.requests > 0


async def test_all_at_once(people: People, model: ScriptedModel, capsys: pytest.CaptureFixture[str]) -> None:
    """Every case of one person, so that the sessions of all the others are there to be confused with."""
    score = Score()
    played = [case for case in CASES if not case.alone]
    for case in played:
        await play(case, partial(_send, people, model), score)
    with capsys.disabled():
        sys.stdout.write(f"\nConversations of clients, {len(played)} of {len(CASES)} cases at once: {score}\n")
    assert (score.merged, score.wrong) == ([], [])


def test_enough_of_them_must_stay_apart() -> None:
    assert sum(case.apart for case in CASES) >= MOST_APART
    assert len({case.client for case in CASES}) >= MOST_APART


async def test_the_sessions_of_the_cases_are_only_theirs(people: People, model: ScriptedModel) -> None:
    """The case with two keys leaves sessions with two owners."""
    case = next(case for case in CASES if any("key" in request for request in case.requests))
    await play(case, partial(_send, people, model), Score())
    owners = await in_thread(lambda: {(row.owner_id, row.pk) for row in Session.objects.all()})
    assert len({owner for owner, _ in owners}) == len(owners) == 2
