"""/admin/gateway/usageday/: usage of all people by day, person, key, agent and model"""

from datetime import UTC, date, datetime
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from gateway.admin import usage
from gateway.keys import api_key_create
from gateway.models import UsageDay
from gateway.services import agent_save
from memories.models import Owner
from tests.admin_rows import owner_make, staff_client

pytestmark = pytest.mark.django_db
PATH = "/admin/gateway/usageday/"
TODAY = date(2026, 11, 20)


@pytest.fixture(autouse=True)
def noon() -> Any:
    with time_machine.travel(datetime(2026, 11, 20, 12, tzinfo=UTC), tick=False):
        yield


def usage_make(owner: Owner, day: date = TODAY, **more: Any) -> None:
    fields = {"agent": "assistant", "model": "fine", "turns": 1, "requests": 2, "input_tokens": 1_000,
              "output_tokens": 30, "cost": 0.5, **more}  # fmt: skip
    UsageDay.objects.create(owner=owner, day=day, **fields)


def rows(client: Client, **query: str) -> list[tuple[str, ...]]:
    answer = client.get(PATH, query)
    assert answer.status_code == 200, answer.content
    return [(row["name"], *row["figures"]) for row in answer.context["rows"]]


def test_usage_by_day_covers_everybody_newest_first(root: Client) -> None:
    usage_make(owner_make("alice"))
    usage_make(owner_make("charlie"))
    usage_make(owner_make("alice"), date(2026, 11, 18), unpriced_requests=2, cost=0)
    usage_make(owner_make("alice"), date(2026, 9, 1))
    assert rows(root) == [
        ("2026-11-20", "2", "4", "2,000", "60", "$1.00"),
        ("2026-11-18", "1", "2", "1,000", "30", "–"),
    ]
    assert rows(root, first="2026-09-01", last="2026-09-30") == [("2026-09-01", "1", "2", "1,000", "30", "$0.50")]


def test_several_groups_have_a_total_unless_there_are_more(root: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    usage_make(owner_make("alice"))
    assert root.get(PATH, {"by": "person"}).context["total"] == ()
    usage_make(owner_make("charlie"), turns=2, unpriced_requests=2, cost=0)
    page = root.get(PATH, {"by": "person"})
    assert page.context["total"] == ("3", "4", "2,000", "60", "$0.50")
    assert b"<tfoot>" in page.content
    monkeypatch.setattr(usage, "MAX_GROUPS", 1)
    assert root.get(PATH, {"by": "person"}).context["total"] == ()


def test_usage_by_person_key_agent_and_model_has_links(root: Client) -> None:
    alice, agent = owner_make("alice"), agent_save("assistant", {})
    key, _ = api_key_create(owner=alice, name="laptop")
    usage_make(alice, key_id=key.pk, turns=5)
    usage_make(owner_make("charlie"), agent="", input_tokens=7)
    found = {by: root.get(PATH, {"by": by}).context["rows"] for by in ("person", "key", "agent", "model")}
    assert {by: [(row["name"], row["link"]) for row in lines] for by, lines in found.items()} == {
        "person": [
            ("alice", f"/admin/memories/owner/{alice.pk}/change/"),
            ("charlie", f"/admin/memories/owner/{owner_make('charlie').pk}/change/"),
        ],
        "key": [("laptop", f"/admin/gateway/apikey/{key.pk}/change/"), ("Signed in", "")],
        "agent": [("assistant", f"/admin/gateway/agent/{agent.pk}/change/"), ("No agent", "")],
        "model": [("fine", "")],
    }
    days = root.get(PATH + found["key"][0]["by_day"])
    assert [(row["name"], row["figures"][0]) for row in days.context["rows"]] == [("2026-11-20", "5")]
    assert b"Only key <b>laptop</b>" in days.content
    people = root.get(PATH + days.context["rows"][0]["by_day"])
    assert [row["name"] for row in people.context["rows"]] == ["alice"]


def test_every_column_sorts_in_both_directions(root: Client) -> None:
    usage_make(owner_make("alice"), turns=1, requests=3, input_tokens=2, output_tokens=3, cost=1)
    usage_make(owner_make("charlie"), turns=2, requests=2, input_tokens=1, output_tokens=4, cost=3)
    first = {
        heading["word"]: root.get(PATH + heading["link"]).context["rows"][0]["name"]
        for heading in root.get(PATH, {"by": "person"}).context["headings"]
    }
    assert first == {
        "Turns": "charlie", "Requests": "alice", "Input tokens": "alice", "Output tokens": "charlie",
        "Cost": "charlie",
    }  # fmt: skip
    sorted_by = root.get(PATH, {"by": "person", "sort": "-turns"})
    turns = sorted_by.context["headings"][0]
    assert (turns["order"], b'aria-sort="descending"' in sorted_by.content) == ("descending", True)
    assert [row["name"] for row in root.get(PATH + turns["link"]).context["rows"]] == ["alice", "charlie"]


@pytest.mark.parametrize(
    "query",
    [
        {"first": "2026-11-21", "last": "2026-11-20"},
        {"first": "2020-01-01"},
        {"first": "soon"},
        {"by": "mood"},
        {"person": "nobody"},
        {"agent": "a" * 201},
    ],
)
def test_invalid_filters_show_an_error(root: Client, query: dict[str, str]) -> None:
    answer = root.get(PATH, query)
    assert (answer.status_code, b'role="alert"' in answer.content) == (400, True)
    assert answer.context["errors"]


def test_an_unknown_order_is_ignored(root: Client) -> None:
    usage_make(owner_make("alice"))
    assert len(rows(root, sort="nothing")) == 1


@pytest.mark.any_database
def test_queries_and_rows_are_limited(root: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(12):
        usage_make(owner_make(f"person-{number}"))
    root.get(PATH)
    with CaptureQueriesContext(connection) as made:
        root.get(PATH, {"by": "person"})
    ours = [query["sql"] for query in made if "usageday" in query["sql"]]
    assert len(ours) == 2
    assert all("LIMIT" in sql for sql in ours)
    monkeypatch.setattr(usage, "MAX_ROWS", 10)
    monkeypatch.setattr(usage, "MAX_GROUPS", 4)
    cut = root.get(PATH, {"by": "person"})
    assert len(cut.context["rows"]) == 4
    assert b"Only the first 4 are shown" in cut.content
    assert b"Only the newest 10 daily totals" in cut.content


def test_names_are_links_only_where_the_reader_may_go() -> None:
    usage_make(owner_make("alice"))
    clerk = staff_client(may=("gateway.view_usageday",))
    (row,) = clerk.get(PATH, {"by": "person"}).context["rows"]
    assert (row["name"], row["link"]) == ("alice", "")
