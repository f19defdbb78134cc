"""POST /api/sessions/{id}/turns with `last_turn`: a message follows the turns that its page shows"""

from typing import Any

import pytest

from gateway.api import sessions
from gateway.models import Message, Run, Session
from memories.database.access import in_thread
from memories.database.batches import Slices
from memories.models import Owner
from tests.conftest import Api
from tests.factories import session_make
from tests.gateway.native import Turns
from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.any_database


@pytest.fixture
def talk(alice_api: Api, session: Session, model: ScriptedModel) -> "Talk":
    return Talk(Turns(alice_api, session), model)


class Talk:
    """Sends turns to one session."""

    def __init__(self, turns: Turns, model: ScriptedModel) -> None:
        self.turns, self.model = turns, model

    async def say(self, content: str, **body: Any) -> str:
        """Send a turn that is answered, and return its ID."""
        self.model.script(f"Answer to {content}.")
        status, turn = await self.turns.send(content, **body)
        assert status == 200, turn
        return str(turn["id"])

    async def refused(self, **body: Any) -> tuple[int, str]:
        """Send a turn that is refused before anything is stored; return the status and the message."""
        before = await in_thread(Message.objects.count)
        status, answer = await self.turns.send("late", **body)
        assert await in_thread(Message.objects.count) == before
        return status, answer["error"]["message"]

    def sent(self) -> list[str]:
        """Return the user messages of the last model call."""
        return [message["content"] for message in self.model.calls[-1].messages if message["role"] == "user"]


async def test_a_message_follows_the_last_turn(talk: Talk) -> None:
    one = await talk.say("one", last_turn="")
    await talk.say("two", last_turn=one)
    assert talk.sent() == ["one", "two"]


async def test_a_message_continues_the_branch_that_its_page_shows(talk: Talk) -> None:
    one = await talk.say("one")
    two = await talk.say("two")
    zwei = await talk.say("zwei", replaces=two)  # by another device
    three = await talk.say("three", last_turn=two)
    assert talk.sent() == ["one", "two", "three"]
    follows = dict(await in_thread(lambda: list(Run.objects.values_list("pk", "follows"))))
    assert {str(run): str(before) for run, before in follows.items() if before} == {two: one, zwei: one, three: two}
    session = await in_thread(Session.objects.get)
    assert session.turns == 3
    await talk.say("drei", last_turn=zwei)
    assert talk.sent() == ["one", "zwei", "drei"]


async def test_a_message_follows_a_turn_in_the_middle_of_a_hidden_branch(talk: Talk) -> None:
    one = await talk.say("one")
    await talk.say("two")  # by another device, as all that follow
    await talk.say("eins", replaces=one)
    await talk.say("deux", last_turn=one)
    assert talk.sent() == ["one", "deux"]


async def test_a_message_is_refused_if_the_conversation_went_on(talk: Talk) -> None:
    went_on = 409, "This conversation went on elsewhere. Read what is new, then send your message again."
    await talk.say("one")
    assert await talk.refused(last_turn="") == went_on
    one = str((await in_thread(Run.objects.get)).pk)
    await talk.say("two")
    assert await talk.refused(last_turn=one) == went_on
    assert await talk.refused(last_turn=one, replaces=one) == went_on


async def test_an_edit_changes_the_branch_that_its_page_shows(talk: Talk) -> None:
    one = await talk.say("one")
    two = await talk.say("two")
    await talk.say("eins", replaces=one)  # by another device
    await talk.say("deux", replaces=two, last_turn=two)
    assert talk.sent() == ["one", "deux"]


async def test_an_edit_of_a_turn_that_many_follow_hides_them(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.runs.rows.TURNS_AT_ONCE", 1)
    turns = [await talk.say(text) for text in ("one", "two", "three")]
    await talk.say("eins", replaces=turns[0], last_turn=turns[-1])
    assert talk.sent() == ["eins"]


async def test_a_turn_of_another_session_is_unknown(talk: Talk, alice: Owner, alice_api: Api) -> None:
    other = Talk(Turns(alice_api, await in_thread(session_make, alice, talk.turns.session.agent)), talk.model)
    elsewhere = await other.say("elsewhere")
    for unknown in (elsewhere, "no-id"):
        assert await talk.refused(last_turn=unknown) == (404, "There is no such turn in this session.")


async def test_a_message_is_refused_while_another_branch_is_chosen_again_and_again(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def choose_in_vain(*args: Any, **options: Any) -> Slices[None]:
        yield

    one = await talk.say("one")
    await talk.say("eins", replaces=one)
    monkeypatch.setattr(sessions, "branch_choose", choose_in_vain)
    status, words = await talk.refused(last_turn=one)
    assert (status, words) == (409, "Another version of this conversation is shown. Send the request again.")
