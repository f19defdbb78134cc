"""A review's write as a type, and as the JSON that is stored in rows"""

from typing import Any

import pytest

from memories.models import Owner
from reviews.models import ReviewRun
from reviews.writes import ReviewWrite, WriteState
from tests.reviews.talk import due_review

STORED: dict[str, Any] = {
    "index": 0,
    "action": "update",
    "memory_id": "3",
    "key": "3",
    "version": 2,
    "target": "user",
    "category": "fact",
    "keywords": ["food"],
    "before": "Eats meat.",
    "after": "Is vegetarian.",
    "state": "staged",
    "reason": "",
}
APPLIED = {**STORED, "state": "applied", "left_version": 3}
EDITED = {**APPLIED, "edited": True, "edited_by": "staff:1"}
NEW = {**STORED, "action": "add", "memory_id": None, "key": "new1", "version": None, "before": None}


@pytest.mark.parametrize("stored", [STORED, APPLIED, EDITED, NEW])
def test_a_write_can_be_read_from_json_and_written_back(stored: dict[str, Any]) -> None:
    write = ReviewWrite.from_json(stored)
    assert write.to_json() == stored
    assert list(write.to_json()) == list(stored)


@pytest.mark.parametrize("stored", [STORED, APPLIED, EDITED])
def test_the_public_json_has_no_internal_fields(stored: dict[str, Any]) -> None:
    public = ReviewWrite.from_json(stored).to_json(public=True)
    assert public.pop("evidence") == {"kind": "none", "quote": "", "session_id": None, "turn_id": None}
    assert public == {k: v for k, v in stored.items() if k not in {"key", "version", "left_version", "edited_by"}}


@pytest.mark.parametrize("state", WriteState.values)
def test_each_state_is_stored_by_name(state: str) -> None:
    write = ReviewWrite.from_json({**STORED, "state": state})
    assert write.state is WriteState(state)
    assert type(write.to_json()["state"]) is str


def test_an_unknown_state_is_an_error() -> None:
    with pytest.raises(ValueError, match="lost"):
        ReviewWrite.from_json({**STORED, "state": "lost"})


def test_missing_fields_get_defaults() -> None:
    write = ReviewWrite.from_json({"after": "Likes tea.", "other": 1}, 4)
    assert (write.index, write.after, write.state, write.number) == (4, "Likes tea.", "staged", 0)


@pytest.mark.parametrize(
    ("memory_id", "key", "number"), [("3", "3", 3), ("7", "new1", 7), (None, "new1", 0), (None, "12345678901", 0)]
)
def test_the_number_of_a_write(memory_id: str | None, key: str, number: int) -> None:
    assert ReviewWrite(index=0, memory_id=memory_id, key=key).number == number


def test_a_refused_write_loses_its_content() -> None:
    write = ReviewWrite.from_json(STORED)
    write.refuse("It holds a password.")
    assert (write.state, write.reason, write.after, write.keywords) == ("refused", "It holds a password.", None, None)


def test_the_column_stores_plain_json_and_returns_writes(alice: Owner) -> None:
    review = due_review(alice)
    review.writes = [ReviewWrite.from_json(EDITED), ReviewWrite.from_json(NEW, 1)]
    review.save()
    review.refresh_from_db()
    assert [write.to_json() for write in review.writes] == [EDITED, NEW]
    assert ReviewRun.objects.values_list("writes__0", flat=True).get() == EDITED
    assert ReviewRun.objects.filter(writes__0__state="applied").exists()
    assert not ReviewRun.objects.filter(writes=[]).exists()
