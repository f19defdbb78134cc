"""A clock that was set back, or servers with different clocks: run IDs still follow the order of turns"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import UUID

import pytest
import time_machine
from django.utils import timezone
from uuid_utils import compat

from gateway.models import Run, Session
from memories import ids
from memories.database.access import in_thread
from memories.ids import first_id, uuid7_after
from memories.models import ThreadRecord
from tests.conftest import Api
from tests.gateway.test_branches import Talk
from tests.scripted_model import ScriptedModel

HOUR = timedelta(hours=1)
SetBack = Callable[..., time_machine.travel]


@pytest.fixture
def set_back(monkeypatch: pytest.MonkeyPatch) -> SetBack:
    """Return a function that sets the clock back, by an hour or another time."""

    def begin(by: timedelta = HOUR) -> time_machine.travel:
        behind = int(by.total_seconds() * 1000) << 80
        monkeypatch.setattr(ids, "compat", SimpleNamespace(uuid7=lambda: UUID(int=compat.uuid7().int - behind)))
        return time_machine.travel(timezone.now() - by, tick=True)

    return begin


@pytest.mark.parametrize("by", [HOUR, timedelta(days=400)])
async def test_turns_keep_their_order_when_the_clock_is_set_back(
    alice_api: Api, session: Session, model: ScriptedModel, set_back: SetBack, by: timedelta
) -> None:
    talk = Talk(alice_api, session, model)
    turns = [await talk.say("One."), await talk.say("Two.")]
    with set_back(by):
        turns += [await talk.say("Three."), await talk.say("Four."), await talk.say("Five.")]
    assert talk.sent() == ["One.", "Two.", "Three.", "Four.", "Five."]
    runs = await in_thread(lambda: {str(run.pk): run for run in Run.objects.filter(session=session)})
    assert [str(runs[pk].follows) for pk in turns[1:]] == turns[:-1]
    assert turns == sorted(turns)
    records = ThreadRecord.objects.filter(session_id=session.pk).order_by("id")
    assert await in_thread(lambda: [str(record.run_id) for record in records]) == turns


async def test_records_keep_their_order_when_another_branch_is_shown_after_the_clock_was_set_back(
    alice_api: Api, session: Session, model: ScriptedModel, set_back: SetBack
) -> None:
    talk = Talk(alice_api, session, model)
    turns = [await talk.say("One."), await talk.say("Two.")]
    turns.append(await talk.say("Two, again.", replaces=turns[1]))
    with set_back():
        await talk.choose(turns[1])
    records = ThreadRecord.objects.filter(session_id=session.pk).order_by("id")
    assert await in_thread(lambda: [str(record.run_id) for record in records]) == turns


def test_uuid7_after_is_later_than_a_time_ahead() -> None:
    now = timezone.now()
    assert uuid7_after(now - HOUR) < first_id(now + HOUR)
    assert first_id(now + HOUR) < uuid7_after(now + HOUR) < first_id(now + HOUR + timedelta(milliseconds=2))
    assert uuid7_after(datetime.max.replace(tzinfo=UTC)) > first_id(now)
    assert uuid7_after(now + HOUR).version == 7
