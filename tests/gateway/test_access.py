"""Turns that are running when their key is revoked or their owner is deactivated."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from gateway.keys import api_key_revoke
from gateway.models import Agent, ApiKey, Run
from gateway.runs import active
from gateway.runs.active import without_access
from memories.database.access import in_thread
from memories.models import Owner
from tests.conftest import Api
from tests.factories import key_make
from tests.gateway.v1 import ask
from tests.scripted_model import Hangs, ScriptedModel
from tests.waiting import eventually_async

pytestmark = pytest.mark.any_database


@pytest.mark.django_db
def test_without_access_distinguishes_keys_and_logins(alice: Owner, charlie: Owner) -> None:
    key, other = key_make(alice)[0], key_make(charlie)[0]
    callers = {(alice.pk, key.pk), (alice.pk, None), (charlie.pk, other.pk), (charlie.pk, None)}
    assert without_access(callers) == set()
    api_key_revoke(key)
    assert without_access(callers) == {(alice.pk, key.pk)}
    User.objects.filter(pk=charlie.user_id).update(is_active=False)
    assert without_access(callers) == {(alice.pk, key.pk), (charlie.pk, other.pk), (charlie.pk, None)}


@pytest.mark.parametrize(
    "revoke",
    [
        lambda: api_key_revoke(ApiKey.objects.get()),
        lambda: User.objects.update(is_active=False),
    ],
    ids=["revoked", "deactivated"],
)
async def test_a_running_turn_stops_when_its_key_or_owner_loses_access(
    alice_api: Api, agent: Agent, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch, revoke: Callable[[], Any]
) -> None:
    monkeypatch.setattr(active, "FLUSH_SECONDS", 0.01)
    monkeypatch.setattr(active, "BEAT_SECONDS", 0.01)
    model.script(Hangs())
    answer = asyncio.create_task(ask(alice_api, "Hi"))
    await eventually_async(lambda: len(model.calls) == 1, within=10)
    await in_thread(revoke)
    response = await answer
    assert (response.status, response.code) == (409, "conflict")
    run = await in_thread(Run.objects.get)
    assert (run.state, run.trace["stopped_by"]) == ("stopped", "access")
