"""Turns that begin and end at the same time share transactions. Each is stored completely and once, whether or not the
others fail."""

import asyncio
from collections.abc import Iterator

import pytest
from pytest_django.fixtures import Settings

from gateway.models import Agent, Message, Run, Session, UsageDay
from memories.database.access import in_thread
from memories.models import ThreadRecord
from tests.conftest import Api
from tests.gateway.v1 import ask
from tests.scripted_model import ScriptedModel
from tests.shutdown import close_lanes

pytestmark = pytest.mark.django_db(transaction=True)
AT_ONCE = 12


@pytest.fixture(autouse=True)
def lanes(settings: Settings) -> Iterator[None]:
    """Use real database threads."""
    settings.DB_THREADS = 1
    yield
    close_lanes()


async def test_simultaneous_turns_are_all_stored_and_can_be_continued(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script(*["Fine."] * AT_ONCE)
    first = await asyncio.gather(*(ask(alice_api, f"Hello {number}.") for number in range(AT_ONCE)))
    assert {answer.status for answer in first} == {200}
    assert len({answer.session for answer in first}) == AT_ONCE
    model.script(*["Good."] * AT_ONCE)
    said = [("Hello {n}.", "Fine.", "And {n}?") for _ in range(AT_ONCE)]
    second = await asyncio.gather(
        *(ask(alice_api, *(text.format(n=number) for text in texts)) for number, texts in enumerate(said))
    )
    assert [answer.session for answer in second] == [answer.session for answer in first]

    def counts() -> tuple[int, ...]:
        ended = Run.objects.filter(state=Run.State.COMPLETED, lease_token=None)
        turns = sum(row.turns for row in UsageDay.objects.all())
        return Session.objects.count(), ended.count(), Message.objects.count(), ThreadRecord.objects.count(), turns

    assert await in_thread(counts) == (AT_ONCE, 2 * AT_ONCE, 4 * AT_ONCE, 2 * AT_ONCE, 2 * AT_ONCE)


async def test_a_refused_turn_does_not_affect_the_others(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script(*["Fine."] * AT_ONCE)
    known = [ask(alice_api, f"Hello {number}.") for number in range(AT_ONCE)]
    unknown = [ask(alice_api, f"Hello {number}.", model="nobody") for number in range(AT_ONCE)]
    answers = await asyncio.gather(*(request for pair in zip(known, unknown, strict=True) for request in pair))
    assert [answer.status for answer in answers] == [200, 404] * AT_ONCE


async def test_a_named_session_has_only_one_open_run(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    """None of them finds the session at first. The first to insert it makes the others retry."""
    model.script(*["Fine."] * 3)
    names = {"x_daybook_session": "mine"}
    answers = await asyncio.gather(*(ask(alice_api, f"Hello {number}.", headers=names) for number in range(3)))
    assert {answer.status for answer in answers} == {200}

    def runs() -> list[int]:
        return sorted(Run.objects.filter(session__external_id="mine").values_list("turn", flat=True))

    assert (await in_thread(runs))[0] == 1
    assert await in_thread(Run.objects.filter(state=Run.State.COMPLETED).count) == 3
