"""Turns since the last review: turns of the shown branch, each counted once"""

from typing import Any

from gateway.models import Run, Session, UsageDay
from memories.database.access import in_thread
from memories.errors import UpstreamError
from memories.models import Owner
from reviews.models import ReviewRun
from tests.conftest import Api
from tests.factories import agent_make, session_make
from tests.scripted_model import ScriptedModel


class Talk:
    """A conversation that checks the session's counters after each turn."""

    def __init__(self, api: Api, model: ScriptedModel, session: Session) -> None:
        self.api, self.model, self.path = api, model, f"/api/sessions/{session.pk}"

    async def counters(self) -> tuple[int, int]:
        _, session = await self.api.get(self.path)
        assert session["turns_since_memory_review"] <= session["turns"]
        return session["turns"], session["turns_since_memory_review"]

    async def say(self, answer: str | Exception = "Yes.", **body: Any) -> str:
        self.model.script(answer)
        await self.api.post(f"{self.path}/turns", {"content": "So?", **body})
        await self.counters()
        return str((await in_thread(Run.objects.latest, "id")).pk)


async def talk_make(owner: Owner, api: Api, model: ScriptedModel, **settings: Any) -> Talk:
    agent = await in_thread(agent_make, **settings)
    return Talk(api, model, await in_thread(session_make, owner, agent))


async def test_replacing_a_turn_removes_later_turns_from_the_count(
    alice: Owner, alice_api: Api, model: ScriptedModel
) -> None:
    talk = await talk_make(alice, alice_api, model)
    first, _, _ = [await talk.say() for _ in range(3)]
    again = await talk.say(replaces=first)
    assert await talk.counters() == (1, 1)
    await talk.say(replaces=again)
    assert await talk.counters() == (1, 1)
    await talk.say()
    assert await talk.counters() == (2, 2)


async def test_a_failed_replacement_is_not_counted(alice: Owner, alice_api: Api, model: ScriptedModel) -> None:
    talk = await talk_make(alice, alice_api, model)
    first = await talk.say()
    failed = await talk.say(UpstreamError("no"), replaces=first)
    assert await talk.counters() == (0, 0)
    await talk.say(replaces=failed)
    assert await talk.counters() == (1, 1)
    failed = await talk.say(UpstreamError("no"), replaces=await talk.say())
    await talk.say()
    assert await talk.counters() == (2, 2)


async def test_a_reviewed_turn_is_not_counted_again(alice: Owner, alice_api: Api, model: ScriptedModel) -> None:
    talk = await talk_make(alice, alice_api, model, memory_review_interval=2)
    await talk.say()
    second = await talk.say()
    assert (await talk.counters(), await in_thread(ReviewRun.objects.count)) == ((2, 0), 1)
    third = await talk.say(replaces=second)
    assert await talk.counters() == (2, 0)
    failed = await talk.say(UpstreamError("no"), replaces=third)
    await talk.say(replaces=failed)
    assert (await talk.counters(), await in_thread(ReviewRun.objects.count)) == ((2, 0), 1)


async def test_an_edited_message_counts_although_a_review_has_read_what_it_replaces(
    alice: Owner, alice_api: Api, model: ScriptedModel
) -> None:
    talk = await talk_make(alice, alice_api, model, memory_review_interval=2)
    await talk.say()
    second = await talk.say(content="I live in Oslo.")
    edited = await talk.say(content="I live in Bergen.", replaces=second)
    assert (await talk.counters(), await in_thread(ReviewRun.objects.count)) == ((2, 1), 1)
    again = await talk.say(content=" I live in  Bergen.", replaces=edited)
    assert await talk.counters() == (2, 1)
    failed = await talk.say(UpstreamError("no"), content="I live in Tromsø.", replaces=again)
    await talk.say(content="I live in Tromsø.", replaces=failed)
    assert (await talk.counters(), await in_thread(ReviewRun.objects.count)) == ((2, 1), 1)
    await talk.say()
    assert (await talk.counters(), await in_thread(ReviewRun.objects.count)) == ((3, 0), 2)


async def test_an_edited_message_counts_once_with_the_unread_turns_after_it(
    alice: Owner, alice_api: Api, model: ScriptedModel
) -> None:
    talk = await talk_make(alice, alice_api, model, memory_review_interval=3)
    _, _, third, *_ = [await talk.say() for _ in range(5)]
    assert await talk.counters() == (5, 2)
    await talk.say(content="Something new.", replaces=third)
    assert await talk.counters() == (3, 1)


async def test_a_message_that_a_client_edits_in_its_own_session_counts(
    alice: Owner, alice_api: Api, model: ScriptedModel
) -> None:
    await in_thread(agent_make, memory_review_interval=2)

    async def ask(*contents: str) -> tuple[int, int]:
        model.script("Yes.")
        roles = ("user", "assistant")
        messages = [{"role": roles[at % 2], "content": content} for at, content in enumerate(contents)]
        body = {"model": "assistant", "messages": messages}
        status, _ = await alice_api.post("/v1/chat/completions", body, x_daybook_session="mine")
        assert status == 200
        session = await in_thread(Session.objects.get)
        return session.turns, session.turns_since_memory_review

    await ask("Hello")
    assert await ask("Hello", "Yes.", "I live in Oslo.") == (2, 0)
    reminder = "<system-reminder>It is noon.</system-reminder>"
    assert await ask("Hello", "Yes.", f"I live in Oslo.{reminder}") == (2, 0)
    assert await ask("Hello", "Yes.", "I live in Bergen.") == (2, 1)


async def test_choosing_a_branch_counts_its_turns_only(alice: Owner, alice_api: Api, model: ScriptedModel) -> None:
    talk = await talk_make(alice, alice_api, model)
    first = await talk.say()
    again = await talk.say(replaces=first)
    for chosen in (first, again):
        assert (await alice_api.post(f"{talk.path}/turns/{chosen}/choose"))[0] == 200
        await talk.counters()
        for _ in range(2 if chosen == first else 0):
            await talk.say()
    assert await talk.counters() == (1, 1)


async def test_choosing_a_branch_restores_the_count_of_its_unreviewed_turns(
    alice: Owner, alice_api: Api, model: ScriptedModel
) -> None:
    talk = await talk_make(alice, alice_api, model, memory_review_interval=3)

    async def choose(turn: str) -> tuple[int, int]:
        assert (await alice_api.post(f"{talk.path}/turns/{turn}/choose"))[0] == 200
        return await talk.counters()

    first, second = [await talk.say() for _ in range(2)]
    edited = await talk.say(content="Other words.", replaces=first)
    assert [await choose(second), await choose(edited), await choose(second)] == [(2, 2), (1, 1), (2, 2)]
    third = await talk.say()
    assert (await talk.counters(), await in_thread(ReviewRun.objects.count)) == ((3, 0), 1)
    assert [await choose(edited), await choose(third)] == [(1, 0), (3, 0)]
    again = await talk.say(replaces=third)
    fourth = await talk.say()
    assert await talk.counters() == (4, 1)
    assert [await choose(third), await choose(again), await choose(fourth)] == [(3, 0), (4, 1), (4, 1)]


async def test_regenerating_adds_no_turn_to_the_daily_usage(alice: Owner, alice_api: Api, model: ScriptedModel) -> None:
    talk = await talk_make(alice, alice_api, model)
    first = await talk.say()
    failed = await talk.say(UpstreamError("no"), replaces=first)
    await talk.say(replaces=failed)
    await talk.say(replaces=await talk.say(UpstreamError("no")))
    assert sum(await in_thread(lambda: list(UsageDay.objects.values_list("turns", flat=True)))) == 2
