"""The stored form of what a run was given (gateway.recalled)."""

import json
from typing import Any

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from gateway.models import Run
from gateway.recalled import RecalledDecoder, RecalledEncoder
from memories.models import Owner
from tests.factories import agent_make, session_make

FROZEN = {"turn_id": None, "lane": "frozen", "why": "In every answer of this session."}
TURN_ID = "01a23180-b9d8-725f-a434-f0d5c08d4a63"
numbers = st.one_of(st.none(), st.integers(0, 10**18).map(str), st.sampled_from(["", "007", "x", "٣", "9" * 30, 5]))
items = st.fixed_dictionaries(
    {
        "memory_id": numbers,
        "turn_id": st.sampled_from([None, TURN_ID]),
        "lane": st.sampled_from(["frozen", "short_term", "long_term"]),
        "why": st.sampled_from(["", FROZEN["why"], "Similar meaning."]),
    }
)
others = st.one_of(items.map(lambda item: item | {"content": "said"}), st.just({}), st.none(), st.text(), st.integers())


def stored(value: Any) -> str:
    return json.dumps(value, cls=RecalledEncoder)


@given(st.lists(st.one_of(items, others), max_size=30))
def test_the_stored_form_gives_the_items_back(value: list[Any]) -> None:
    assert json.loads(stored(value), cls=RecalledDecoder) == value


@given(st.lists(st.one_of(items, others), max_size=30))
def test_rows_from_before_are_read_as_they_are(value: list[Any]) -> None:
    assert json.loads(json.dumps(value), cls=RecalledDecoder) == value


def test_memories_with_the_same_reason_are_one_entry() -> None:
    value = [{"memory_id": str(number), **FROZEN} for number in range(100, 130)]
    assert len(stored(value)) < len(json.dumps(value)) / 10


@pytest.mark.django_db
def test_the_column_holds_the_short_form(alice: Owner) -> None:
    value = [{"memory_id": "31", **FROZEN}, {"memory_id": "32", **FROZEN}]
    session = session_make(alice, agent_make())
    run = Run.objects.create(owner=alice, session=session, turn=1, request_id="r", recalled=value)
    with connection.cursor() as cursor:
        cursor.execute("SELECT recalled FROM gateway_run")
        (raw,) = cursor.fetchone()
    assert json.loads(raw) == [{"lane": "frozen", "why": FROZEN["why"], "memories": [31, 32]}]
    assert Run.objects.get(pk=run.pk).recalled == value
