"""Turns that begin and end at the same moment share transactions: each is stored once, whole, and whatever becomes of
the others."""

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
    """Real database threads."""
    settings.DB_THREADS = 1
    yield
    close_lanes()


async def test_all_are_stored_and_gone_on_from(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
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

    def seen() -> tuple[int, ...]:
        ended = Run.objects.filter(state=Run.State.COMPLETED, lease_token=None)
        turns = sum(row.turns for row in UsageDay.objects.all())
        return Session.objects.count(), ended.count(), Message.objects.count(), ThreadRecord.objects.count(), turns

    assert await in_thread(seen) == (AT_ONCE, 2 * AT_ONCE, 4 * AT_ONCE, 2 * AT_ONCE, 2 * AT_ONCE)


async def test_one_that_is_refused_fails_no_other(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script(*["Fine."] * AT_ONCE)
    named = [ask(alice_api, f"Hello {number}.") for number in range(AT_ONCE)]
    unknown = [ask(alice_api, f"Hello {number}.", model="nobody") for number in range(AT_ONCE)]
    answers = await asyncio.gather(*(one for pair in zip(named, unknown, strict=True) for one in pair))
    assert [answer.status for answer in answers] == [200, 404] * AT_ONCE


async def test_of_one_named_session_only_one_run_is_open_at_once(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    """They find no session of that name, and the first to be inserted makes the others look again."""
    model.script(*["Fine."] * 3)
    names = {"x_daybook_session": "mine"}
    answers = await asyncio.gather(*(ask(alice_api, f"Hello {number}.", headers=names) for number in range(3)))
    assert {answer.status for answer in answers} == {200}

    def runs() -> list[int]:
        return sorted(Run.objects.filter(session__external_id="mine").values_list("turn", flat=True))

    assert (await in_thread(runs))[0] == 1
    assert await in_thread(Run.objects.filter(state=Run.State.COMPLETED).count) == 3
