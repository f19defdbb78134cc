"""gateway.sweep: use counters of recalled memories"""

from gateway.models import Run, Session
from gateway.sweep import count_recalls
from memories.models import Book, Memory, Owner
from tests.factories import memory_make


def run_make(session: Session, recalled: list[dict[str, object]], state: str = "completed") -> Run:
    return Run.objects.create(
        owner=session.owner, session=session, turn=1, state=state, request_id="r", recalled=recalled
    )


def test_recalled_memories_are_counted_once(alice: Owner, session: Session) -> None:
    memory_make(alice, "One.")
    memory_make(alice, "Two.")
    generation = Book.objects.get().generation
    used = {"memory_id": "1", "turn_id": None, "lane": "long_term", "why": ""}
    run_make(
        session, [used, {**used, "memory_id": "2", "lane": "frozen"}, {**used, "memory_id": None, "lane": "short_term"}]
    )
    run_make(session, [used])
    run_make(session, [used], state="stopped")
    assert (count_recalls(), count_recalls()) == (2, 0)
    first, second = Memory.objects.order_by("number")
    assert (first.usage_count, second.usage_count) == (2, 0)
    assert first.last_used_at == Run.objects.filter(state="completed").latest("started_at").started_at
    assert Book.objects.get().generation == generation
