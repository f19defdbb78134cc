"""The kept record of a session grows with its turns, and says what a fresh reading would say."""

from gateway.models import Session
from memories.database.access import in_thread
from memories.models import Owner
from memories.recall.threads import ThreadTurn, thread_cache
from tests.conftest import Api
from tests.scripted_model import ScriptedModel


async def kept_and_read(alice: Owner, session: Session) -> tuple[tuple[ThreadTurn, ...], tuple[ThreadTurn, ...]]:
    cached = thread_cache.peek(session.pk)
    assert cached is not None
    return cached.turns, await in_thread(thread_cache.read, alice.pk, session.pk)


async def test_it_equals_what_is_read(alice_api: Api, alice: Owner, session: Session, model: ScriptedModel) -> None:
    path = f"/api/sessions/{session.pk}/turns"
    model.script("1", "2", "3", "II", "III")
    ids = [(await alice_api.post(path, {"content": text}))[1]["id"] for text in ("one", "two", "three")]
    kept, read = await kept_and_read(alice, session)
    assert kept == read
    assert [turn.user for turn in kept] == ["one", "two", "three"]
    await alice_api.post(path, {"content": "zwei", "replaces": ids[1]})
    await alice_api.post(path, {"content": "drei"})
    kept, read = await kept_and_read(alice, session)
    assert kept == read
    assert [turn.user for turn in kept] == ["one", "zwei", "drei"]


async def test_a_replaced_first_turn_is_gone(
    alice_api: Api, alice: Owner, session: Session, model: ScriptedModel
) -> None:
    path = f"/api/sessions/{session.pk}/turns"
    model.script("1", "I")
    first = (await alice_api.post(path, {"content": "one"}))[1]["id"]
    await alice_api.post(path, {"content": "eins", "replaces": first})
    kept, read = await kept_and_read(alice, session)
    assert kept == read
    assert [turn.user for turn in kept] == ["eins"]


async def test_what_another_process_recorded_is_not_skipped(
    alice_api: Api, alice: Owner, session: Session, model: ScriptedModel
) -> None:
    path = f"/api/sessions/{session.pk}/turns"
    model.script("1", "2", "3")
    await alice_api.post(path, {"content": "one"})
    thread_cache.clear()  # as a process that has not seen it
    await alice_api.post(path, {"content": "two"})
    await alice_api.post(path, {"content": "three"})
    kept, read = await kept_and_read(alice, session)
    assert [turn.user for turn in kept] == [turn.user for turn in read] == ["one", "two", "three"]
