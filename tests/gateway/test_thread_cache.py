"""The cached record of a session equals what is read from the database"""

from gateway.models import Session
from memories.database.access import in_thread
from memories.models import Owner
from memories.recall.threads import ThreadTurn, thread_cache, thread_reader
from tests.conftest import Api
from tests.scripted_model import ScriptedModel


async def cached_and_read(alice: Owner, session: Session) -> tuple[tuple[ThreadTurn, ...], tuple[ThreadTurn, ...]]:
    cached = thread_cache.peek(session.pk)
    assert cached is not None
    return cached.turns, tuple(await in_thread(thread_reader(), alice.pk, session.pk))


async def test_the_cache_equals_the_database(
    alice_api: Api, alice: Owner, session: Session, model: ScriptedModel
) -> None:
    path = f"/api/sessions/{session.pk}/turns"
    model.script("1", "2", "3", "II", "III")
    ids = [(await alice_api.post(path, {"content": text}))[1]["id"] for text in ("one", "two", "three")]
    cached, read = await cached_and_read(alice, session)
    assert cached == read
    assert [turn.user for turn in cached] == ["one", "two", "three"]
    await alice_api.post(path, {"content": "zwei", "replaces": ids[1]})
    await alice_api.post(path, {"content": "drei"})
    cached, read = await cached_and_read(alice, session)
    assert cached == read
    assert [turn.user for turn in cached] == ["one", "zwei", "drei"]


async def test_a_replaced_first_turn_is_removed(
    alice_api: Api, alice: Owner, session: Session, model: ScriptedModel
) -> None:
    path = f"/api/sessions/{session.pk}/turns"
    model.script("1", "I")
    first = (await alice_api.post(path, {"content": "one"}))[1]["id"]
    await alice_api.post(path, {"content": "eins", "replaces": first})
    cached, read = await cached_and_read(alice, session)
    assert cached == read
    assert [turn.user for turn in cached] == ["eins"]


async def test_records_of_another_process_are_included(
    alice_api: Api, alice: Owner, session: Session, model: ScriptedModel
) -> None:
    path = f"/api/sessions/{session.pk}/turns"
    model.script("1", "2", "3")
    await alice_api.post(path, {"content": "one"})
    thread_cache.clear()  # as in another process
    await alice_api.post(path, {"content": "two"})
    await alice_api.post(path, {"content": "three"})
    cached, read = await cached_and_read(alice, session)
    assert [turn.user for turn in cached] == [turn.user for turn in read] == ["one", "two", "three"]
