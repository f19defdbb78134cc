"""The staged book: the results of a review's tool calls"""

import json
from typing import Any

import pytest

from memories.models import Memory, Owner, Target
from memories.tools import ToolCall
from reviews.staged import StagedBook
from tests.factories import memory_make

pytestmark = pytest.mark.any_database

LIMITS = {Target.USER: 100, Target.MEMORY: 100}


def staged(*rows: Memory, limits: dict[Target, int] | None = None, max_writes: int = 5) -> StagedBook:
    return StagedBook.of(rows, limits or LIMITS, max_writes=max_writes)


def call(book: StagedBook, name: str, **arguments: Any) -> dict[str, Any]:
    answer = book.call(ToolCall(id="c", name=name, arguments=json.dumps(arguments)))
    return dict(json.loads(answer))


def add(book: StagedBook, content: str = "Likes tea.", **fields: Any) -> dict[str, Any]:
    return call(book, "add_memory", **{"content": content, "target": "user", **fields})


def test_an_accepted_write_is_staged_and_nothing_is_stored(alice: Owner) -> None:
    book = staged()
    assert add(book, category="preference", keywords=["drink"]) == {"ok": True, "id": "new1"}
    assert [(w.action, w.after, w.category, w.keywords) for w in book.accepted] == [
        ("add", "Likes tea.", "preference", ["drink"])
    ]
    assert not Memory.objects.exists()


@pytest.mark.parametrize("name", ["search_memories", "get_memories", "read", "shell", "Add_Memory", ""])
def test_calls_of_other_tools_are_dropped_and_counted_by_name(name: str) -> None:
    book = staged()
    for _ in range(2):
        assert book.call(ToolCall(id="c", name=name, arguments='{"content": "x"}')) == ""
    assert (book.dropped, book.writes) == ({name: 2}, [])


@pytest.mark.parametrize(
    "arguments", ["", "{", "[]", '{"content": 7}', '{"content": "x", "target": "world"}', '{"content": "x", "why": 1}']
)
def test_invalid_arguments_are_explained_and_are_not_a_write(arguments: str) -> None:
    book = staged()
    answer = json.loads(book.call(ToolCall(id="c", name="add_memory", arguments=arguments)))
    assert (answer["ok"], answer["error"]) == (False, "invalid_arguments")
    assert "Call add_memory again" in answer["message"]
    assert book.writes == []


def test_the_sixth_write_is_refused_with_a_reason(alice: Owner) -> None:
    tea, york = memory_make(alice, "Likes tea."), memory_make(alice, "Lives in York.")
    book = staged(tea, york)
    assert call(book, "update_memory", id=tea.number, content="Likes coffee.")["ok"]
    assert call(book, "delete_memory", id=york.number)["ok"]
    assert all(add(book, f"Fact {number}.")["ok"] for number in range(3))
    for answer in (add(book, "One too many."), call(book, "delete_memory", id=tea.number)):
        assert (answer["ok"], answer["error"]) == (False, "write_limit")
        assert "at most 5" in answer["message"]
    assert len(book.accepted) == 5


def test_refused_and_repeated_writes_do_not_use_up_the_limit() -> None:
    book = staged(max_writes=1)
    assert not add(book, "x" * 101)["ok"]
    assert add(book)["ok"]
    assert add(staged(max_writes=0))["error"] == "write_limit"


@pytest.mark.parametrize(("length", "fits"), [(100, True), (101, False)])
def test_the_budget_counts_stored_and_staged_memories(alice: Owner, length: int, fits: bool) -> None:
    stored = memory_make(alice, "s" * 30)
    book = staged(stored)
    assert add(book, "t" * 40)["ok"]
    answer = add(book, "u" * (length - 70))
    assert answer["ok"] == fits
    if not fits:
        assert (answer["error"], answer["used"], answer["limit"], answer["needed"]) == ("over_budget", 70, 100, 31)
        assert {"id": "new1", "content": "t" * 40} in answer["entries"]
    assert book.room() == {"user": 0 if fits else 30, "memory": 100}


def test_a_delete_frees_space_and_zero_means_no_limit(alice: Owner) -> None:
    full = memory_make(alice, "s" * 100)
    book = staged(full)
    assert not add(book)["ok"]
    assert call(book, "delete_memory", id=full.number)["ok"]
    assert add(book)["ok"]
    assert add(staged(full, limits={Target.USER: 0, Target.MEMORY: 0}), "t" * 900)["ok"]


def test_a_memory_over_the_budget_can_be_shortened(alice: Owner) -> None:
    first, second = memory_make(alice, "s" * 60), memory_make(alice, "t" * 60)
    book = staged(first, second)
    assert call(book, "update_memory", id=first.number, content="u" * 59)["ok"]
    assert call(book, "update_memory", id=second.number, content="u" * 61)["error"] == "over_budget"


def test_a_blocked_memory_is_hidden_but_uses_space(alice: Owner) -> None:
    hidden = memory_make(alice, "s" * 90)
    hidden.scan_rule = "instruction_override"
    book = staged(hidden)
    assert (book.entries, book.room()["user"]) == ({}, 10)
    assert add(book, "t" * 11)["error"] == "over_budget"


def test_repetitions_of_stored_and_staged_memories_are_known(alice: Owner) -> None:
    stored = memory_make(alice, "Likes tea.")
    book = staged(stored)
    assert add(book, "likes  TEA")["id"] == str(stored.number)
    assert add(book, "Likes milk.")["id"] == "new1"
    assert add(book, "Likes milk!")["note"].startswith("Already known")
    assert len(book.accepted) == 1


def test_an_update_to_the_text_of_another_memory_is_refused(alice: Owner) -> None:
    stored, other = memory_make(alice, "Likes tea."), memory_make(alice, "Likes milk.")
    book = staged(stored, other)
    refused = call(book, "update_memory", id=other.number, content="likes  TEA")
    assert (refused["error"], refused["memory_id"]) == ("conflict", str(stored.number))
    assert call(book, "update_memory", id=other.number, content="Likes MILK!")["ok"]


def test_a_review_can_update_and_delete_its_own_additions() -> None:
    book = staged()
    assert add(book)["id"] == "new1"
    assert call(book, "update_memory", id="new1", content="Likes green tea.")["ok"]
    assert call(book, "delete_memory", id="new1")["ok"]
    assert [w.action for w in book.accepted] == ["add", "update", "delete"]
    assert call(book, "delete_memory", id="new1")["error"] == "not_found"


@pytest.mark.parametrize("number", [0, -1, "x", "new9", 10**30])
def test_an_unknown_id_is_not_found(number: int | str) -> None:
    assert call(staged(), "delete_memory", id=number)["error"] == "not_found"


def test_a_secret_is_refused_and_not_stored() -> None:
    book = staged()
    answer = add(book, "My password is " + "hunter2-" + "Zebra99")
    assert answer["error"] == "blocked_by_scan"
    assert "hunter2" not in json.dumps([answer, [w.to_json() for w in book.writes]])


def test_a_nearly_exhausted_budget_is_a_warning() -> None:
    assert "Merge or drop" in add(staged(), "t" * 90)["warning"]
    assert "warning" not in add(staged(), "t" * 89)


def test_the_number_of_recorded_writes_is_limited() -> None:
    book = staged(max_writes=0)
    for number in range(200):
        add(book, f"Fact {number}.")
    assert len(book.writes) == 50
