"""Searching the messages of sessions on both databases: what is found, and what must not be found"""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from gateway.models import Agent, Message, Run, Session
from gateway.sessions import message_index
from gateway.sessions.search import FoundSession, query_words, search_sessions
from memories.caller import KeyLimits
from memories.database.batches import finish
from memories.forgetting import Scope, erasure_begin, erasure_slices
from memories.models import Owner
from tests.factories import agent_make, owner_make, session_make
from tests.unsliced import session_delete

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
SQLITE = connection.vendor == "sqlite"


@pytest.fixture(autouse=True)
def agent() -> Agent:
    return agent_make("assistant")


def turn_make(session: Session, *texts: str, role: str = "user", at: datetime = NOON, **run: Any) -> list[Message]:
    """Create a turn with these messages."""
    turn_run = Run.objects.create(
        owner=session.owner, session=session, turn=1, state="completed", request_id="r", **run
    )
    first = Message.objects.filter(session=session).count() + 1
    return Message.objects.bulk_create(
        Message(
            owner=session.owner, session=session, run=turn_run, seq=first + place, role=role, text=text, created_at=at
        )
        for place, text in enumerate(texts)
    )


def found(owner: Owner, query: str, **more: Any) -> list[FoundSession]:
    return search_sessions(Session.objects.filter(owner=owner), owner.pk, query, **{"limit": 20, **more})[0]


def titles(owner: Owner, query: str, **more: Any) -> list[str]:
    return [row.session.title for row in found(owner, query, **more)]


def shown(row: FoundSession) -> list[str]:
    """Return the snippets with matches in brackets."""
    return ["".join(f"[{text}]" if marked else text for text, marked in hit.snippet.pieces()) for hit in row.hits]


def test_messages_and_answers_are_found_with_their_words_marked(alice: Owner, agent: Agent) -> None:
    session = session_make(alice, agent, title="Dinner")
    turn_make(session, "No hazelnuts, please.")
    answers = turn_make(
        session, "Noted: a cake without Hazelnuts or almonds.", role="assistant", at=NOON + timedelta(minutes=1)
    )
    (row,) = found(alice, "hazelnuts")
    assert shown(row) == ["Noted: a cake without [Hazelnuts] or almonds.", "No [hazelnuts], please."]
    assert row.count == 2
    hit = row.hits[0]
    assert (hit.role, hit.seq, hit.turn_id) == ("assistant", 2, answers[0].run_id)
    assert hit.said_at == NOON + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("query", "is_found"),
    [
        ("gotl", True),  # the last word matches as a prefix
        ("gotl trip", False),  # other words do not
        ("TRIP gotland", True),
        ("trip norway", False),
        ("ferry-port", True),
        ("port_x.py", True),
        ("/srv/ferry", True),
        ("cafe", True),
        ("café", True),
        ("müller", True),
        ("t", False),
        ("'; --", False),
        ('" OR text : "', False),
        ("trip NOT norway", False),
        ("trip & !norway", False),
        ("owner : x*", False),
        ("\x00", False),
        ("²", False),  # a word for Python but not for PostgreSQL
        ("①", False),
        ("", False),
    ],
)
def test_words_match_in_any_order_and_special_characters_are_no_operators(
    alice: Owner, agent: Agent, query: str, is_found: bool
) -> None:
    if not SQLITE and query == "cafe":
        pytest.skip("PostgreSQL keeps diacritics unless an extension is installed")
    turn_make(
        session_make(alice, agent, title="x"), "The trip to Gotland by /srv/ferry-port_x.py, in the Café of Frau Müller"
    )
    assert bool(titles(alice, query)) == is_found


def test_the_number_of_words_in_a_query_is_limited(alice: Owner, agent: Agent) -> None:
    assert len(query_words("needle " * 10_000)) == 16
    turn_make(session_make(alice, agent, title="Hay"), "a needle in the hay")
    assert titles(alice, "needle " * 10_000) == ["Hay"]


def test_title_matches_come_first_then_sessions_by_newest_message(alice: Owner, agent: Agent) -> None:
    for number, name in enumerate(["oldest", "middle", "newest"]):
        turn_make(session_make(alice, agent, title=name), "about tea", at=NOON + timedelta(days=number))
    session_make(alice, agent, title="Tea and cake")
    assert titles(alice, "tea") == ["Tea and cake", "newest", "middle", "oldest"]


@pytest.mark.parametrize("query", ["ÄRZTE", "ärzte in köln"])
def test_titles_match_case_insensitively(alice: Owner, agent: Agent, query: str) -> None:
    session_make(alice, agent, title="Ärzte in Köln")
    assert titles(alice, query) == ["Ärzte in Köln"]


def test_results_are_paged(alice: Owner, agent: Agent) -> None:
    for number in range(5):
        turn_make(session_make(alice, agent, title=f"{number}"), "about tea", at=NOON - timedelta(days=number))
    seen: list[str] = []
    last, more = None, True
    while more:
        page, more = search_sessions(Session.objects.all(), alice.pk, "tea", limit=2, after=last)
        seen += [row.session.title for row in page]
        last = page[-1].session.pk
    assert seen == ["0", "1", "2", "3", "4"]


def test_sessions_of_other_owners_are_not_found(alice: Owner, agent: Agent) -> None:
    charlie = owner_make("charlie")
    turn_make(session_make(charlie, agent, title="Secret"), "hazelnuts")
    assert titles(alice, "hazelnuts") == []
    assert titles(charlie, "hazelnuts") == ["Secret"]
    for query in (charlie.pk.hex, str(charlie.pk)):
        assert titles(alice, query) == []
        assert titles(charlie, query) == []


def test_a_limited_key_finds_only_sessions_of_its_agents(alice: Owner, agent: Agent) -> None:
    turn_make(session_make(alice, agent, title="Mine"), "hazelnuts")
    limits = KeyLimits(agents=("other",))
    sessions = limits.filter(Session.objects.filter(owner=alice), agent="agent__name")
    assert search_sessions(sessions, alice.pk, "hazelnuts", limit=5, limits=limits)[0] == []


def test_superseded_tool_and_temporary_messages_are_not_found(alice: Owner, agent: Agent) -> None:
    session = session_make(alice, agent, title="Ordinary")
    turn_make(session, "replaced hazelnuts", superseded=True)
    turn_make(session, "tool hazelnuts", role="tool")
    turn_make(session, "temporary hazelnuts", temporary=True)
    turn_make(session_make(alice, agent, title="Temporary hazelnuts", temporary=True), "hazelnuts")
    assert titles(alice, "hazelnuts") == []
    Run.objects.update(superseded=False)
    assert [row.count for row in found(alice, "hazelnuts")] == [1]


def test_ingested_and_imported_messages_are_found_without_a_turn(alice: Owner, agent: Agent) -> None:
    session = session_make(alice, agent, title="Imported")
    Message.objects.create(owner=alice, session=session, seq=1, role="user", kind="history", text="old hazelnuts")
    finish(message_index.history_index(alice.pk))
    (row,) = found(alice, "hazelnuts")
    assert [(hit.turn_id, hit.seq) for hit in row.hits] == [(None, 1)]


def history_make(session: Session, *texts: str) -> None:
    """Store messages as history."""
    rows = (
        Message(owner=session.owner, session=session, seq=seq, role="user", kind="history", text=text)
        for seq, text in enumerate(texts, start=1)
    )
    Message.objects.bulk_create(rows)


@pytest.mark.skipif(not SQLITE, reason="PostgreSQL indexes history with its transaction")
def test_history_is_indexed_after_its_transaction_in_short_ones(alice: Owner, charlie: Owner, agent: Agent) -> None:
    history_make(session_make(alice, agent), "plum " * 20_000, *["plum jam"] * 500, "plum " * 20_000)
    history_make(session_make(charlie, agent), "plum jam")
    assert (raw_hits(alice, "plum"), raw_hits(charlie, "plum")) == (0, 0)
    indexed = [raw_hits(alice, "plum") for _ in message_index.history_index(alice.pk)]
    assert indexed == [1, 301, 501, 502]
    assert (raw_hits(charlie, "plum"), len(found(charlie, "plum"))) == (0, 0)
    message_index.history_sweep()
    assert raw_hits(charlie, "plum") == 1
    with CaptureQueriesContext(connection) as captured:
        message_index.history_sweep()
    assert len(captured) == 1


@pytest.mark.skipif(not SQLITE, reason="PostgreSQL indexes history with its transaction")
def test_history_that_is_changed_or_deleted_before_it_is_indexed_leaves_nothing(alice: Owner, agent: Agent) -> None:
    session = session_make(alice, agent)
    history_make(session, "quince jelly", "plum jam", "sloe gin")
    Message.objects.filter(text="quince jelly").delete()
    Message.objects.filter(text="plum jam").update(text="fig")
    finish(message_index.history_index(alice.pk))
    assert [raw_hits(alice, word) for word in ("quince", "plum", "fig", "sloe")] == [0, 0, 1, 1]
    Message.objects.filter(text="fig").update(text="date")
    session_delete(session)
    message_index.history_sweep()
    assert [raw_hits(alice, word) for word in ("fig", "date", "sloe")] == [0, 0, 0]


def test_a_deleted_session_leaves_the_index(alice: Owner, agent: Agent) -> None:
    session = session_make(alice, agent, title="Gone")
    turn_make(session, "quince jelly")
    assert titles(alice, "quince") == ["Gone"]
    session_delete(session)
    assert titles(alice, "quince") == []
    assert raw_hits(alice, "quince") == 0


def test_a_deleted_owner_leaves_the_index(alice: Owner, agent: Agent) -> None:
    turn_make(session_make(alice, agent), "quince jelly")
    assert raw_hits(alice, "quince") == 1
    for _ in erasure_slices(erasure_begin(alice.pk, Scope.OWNER)):
        pass
    assert raw_hits(alice, "quince") == 0


def raw_hits(owner: Owner, word: str) -> int:
    """Return the number of messages in the index, even if their rows are gone."""
    wanted = message_index.messages_with(owner.pk, [word])
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM ({wanted.sql}) AS hits", wanted.params)  # noqa: S608
        return int(cursor.fetchone()[0])


def test_a_changed_message_is_found_by_its_new_words_only(alice: Owner, agent: Agent) -> None:
    (message,) = turn_make(session_make(alice, agent, title="x"), "quince jelly")
    Message.objects.filter(pk=message.pk).update(text="")
    assert raw_hits(alice, "quince") == 0
    Message.objects.filter(pk=message.pk).update(text="plum jam")
    assert (raw_hits(alice, "quince"), raw_hits(alice, "plum")) == (0, 1)


def test_long_messages_of_any_content_can_be_indexed(alice: Owner, agent: Agent) -> None:
    session = session_make(alice, agent, title="Long")
    texts = [
        "".join(f"a{number:x}-b.c/d{number:x} " for number in range(60_000)),
        " ".join(chr(0x20000 + number) for number in range(40_000)),
        "x" * 900_000,
        "日本" * 300_000,
        "<b>&amp;" * 100_000,
    ]
    turn_make(session, *texts)
    turn_make(session, "word " * 10_000 + "hazelnuts" + " word" * 10_000)
    assert shown(found(alice, "hazelnuts")[0])[0].count("[hazelnuts]") == 1
    assert len(found(alice, "hazelnuts")[0].hits[0].snippet.text) < 210


def test_a_search_takes_a_fixed_number_of_queries(alice: Owner, agent: Agent) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            found(alice, "tea")
        return len(captured)

    turn_make(session_make(alice, agent), "tea")
    one = queries()
    for _ in range(12):
        turn_make(session_make(alice, agent), *["more tea"] * 5)
    assert queries() == one == 4


def test_only_the_newest_matches_are_considered(alice: Owner, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_index, "MAX_FOUND", 3)
    turn_make(session_make(alice, agent, title="old"), "tea")
    turn_make(session_make(alice, agent, title="new"), *["tea"] * 3)
    assert titles(alice, "tea") == ["new"]


@pytest.mark.skipif(not SQLITE, reason="PostgreSQL's index belongs to the table")
def test_the_index_is_completed_after_triggers_were_missing(alice: Owner, agent: Agent) -> None:
    session = session_make(alice, agent, title="x")
    turn_make(session, "quince jelly")
    with connection.cursor() as cursor:
        for name in ("added", "removed", "changed"):
            cursor.execute(f"DROP TRIGGER gateway_message_{name}")
    turn_make(session, "plum jam")
    Message.objects.filter(text="quince jelly").delete()
    assert (raw_hits(alice, "quince"), raw_hits(alice, "plum")) == (1, 0)
    message_index.triggers_ensure(using="default")
    assert (raw_hits(alice, "quince"), raw_hits(alice, "plum")) == (0, 1)
    turn_make(session_make(alice, agent), "sloe gin")
    assert raw_hits(alice, "sloe") == 1


@pytest.mark.skipif(not SQLITE, reason="PostgreSQL removes old words with VACUUM")
def test_erased_words_are_removed_from_the_sqlite_index_files(alice: Owner, agent: Agent) -> None:
    def on_disk(word: bytes) -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT block FROM gateway_message_words_data")
            return any(word in block for (block,) in cursor.fetchall())

    session = session_make(alice, agent)
    for number in range(40):
        turn_make(session_make(alice, agent), f"other words {number} " + uuid4().hex)
    turn_make(session, "quincejelly")
    assert on_disk(b"quincejelly")
    session_delete(session)
    message_index.erased_purge()
    assert not on_disk(b"quincejelly")
    with CaptureQueriesContext(connection) as captured:
        message_index.erased_purge()
    assert not [query for query in captured.captured_queries if "merge" in query["sql"]]


def test_the_index_is_used(alice: Owner, agent: Agent) -> None:
    """A plan that reads all messages would give the same result slowly."""
    turn_make(session_make(alice, agent), *[f"word {number}" for number in range(50)])
    wanted = message_index.messages_with(alice.pk, ["word"])
    with connection.cursor() as cursor:
        if not SQLITE:
            cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {'QUERY PLAN ' if SQLITE else ''}{wanted.sql}", wanted.params)
        plan = " ".join(str(row) for row in cursor.fetchall())
    assert "gateway_message_words" in plan
    assert "SCAN gateway_message " not in plan


@pytest.mark.skipif(not SQLITE, reason="PostgreSQL plans with statistics")
def test_only_matching_messages_are_read(alice: Owner, agent: Agent) -> None:
    turn_make(session_make(alice, agent), "word")
    with CaptureQueriesContext(connection) as captured:
        found(alice, "word")
    plans = []
    with connection.cursor() as cursor:
        for query in captured.captured_queries:
            cursor.execute(f"EXPLAIN QUERY PLAN {query['sql']}")
            plans += [row[3] for row in cursor.fetchall()]
    assert "SEARCH gateway_message USING INDEX sqlite_autoindex_gateway_message_1 (id=?)" in plans
    assert not [plan for plan in plans if "gateway_message" in plan and "owner_id=?" in plan]


def test_no_character_breaks_the_query(alice: Owner, agent: Agent) -> None:
    for first in range(0, 0x3000, 64):
        letters = [chr(code) for code in range(first, first + 12)]
        assert titles(alice, " ".join(letters) + " nowhere") == []
