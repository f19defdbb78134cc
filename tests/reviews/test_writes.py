"""A review's write as a type, and as the JSON that rows have always kept"""

from typing import Any

import pytest

from memories.models import Owner
from reviews.models import ReviewRun
from reviews.writes import ReviewWrite, WriteState
from tests.reviews.talk import newest_review, reviewed_session, say

KEPT: dict[str, Any] = {
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
APPLIED = {**KEPT, "state": "applied", "left_version": 3}
EDITED = {**APPLIED, "edited": True, "edited_by": "staff:1"}
NEW = {**KEPT, "action": "add", "memory_id": None, "key": "new1", "version": None, "before": None}


@pytest.mark.parametrize("kept", [KEPT, APPLIED, EDITED, NEW])
def test_json_becomes_a_write_and_the_same_json_again(kept: dict[str, Any]) -> None:
    write = ReviewWrite.from_json(kept)
    assert write.to_json() == kept
    assert list(write.to_json()) == list(kept)


@pytest.mark.parametrize("kept", [KEPT, APPLIED, EDITED])
def test_the_api_is_not_shown_what_the_row_keeps_for_itself(kept: dict[str, Any]) -> None:
    shown = ReviewWrite.from_json(kept).to_json(public=True)
    assert shown.pop("evidence") == {"kind": "none", "quote": "", "session_id": None, "turn_id": None}
    assert shown == {k: v for k, v in kept.items() if k not in {"key", "version", "left_version", "edited_by"}}


@pytest.mark.parametrize("state", WriteState.values)
def test_each_state_is_kept_by_its_name(state: str) -> None:
    write = ReviewWrite.from_json({**KEPT, "state": state})
    assert write.state is WriteState(state)
    assert type(write.to_json()["state"]) is str


def test_an_unknown_state_is_an_error() -> None:
    with pytest.raises(ValueError, match="lost"):
        ReviewWrite.from_json({**KEPT, "state": "lost"})


def test_a_row_that_says_little_has_its_place_as_index() -> None:
    write = ReviewWrite.from_json({"after": "Likes tea.", "other": 1}, 4)
    assert (write.index, write.after, write.state, write.number) == (4, "Likes tea.", "staged", 0)


@pytest.mark.parametrize(
    ("memory_id", "key", "number"), [("3", "3", 3), ("7", "new1", 7), (None, "new1", 0), (None, "12345678901", 0)]
)
def test_the_number_is_that_of_a_memory_that_can_be(memory_id: str | None, key: str, number: int) -> None:
    assert ReviewWrite(index=0, memory_id=memory_id, key=key).number == number


def test_what_is_refused_is_kept_without_its_words() -> None:
    write = ReviewWrite.from_json(KEPT)
    write.refuse("It holds a password.")
    assert (write.state, write.reason, write.after, write.keywords) == ("refused", "It holds a password.", None, None)


def test_the_column_holds_plain_json_and_reads_as_writes(alice: Owner) -> None:
    say(reviewed_session(alice))
    review = newest_review()
    review.writes = [ReviewWrite.from_json(EDITED), ReviewWrite.from_json(NEW, 1)]
    review.save()
    review.refresh_from_db()
    assert [write.to_json() for write in review.writes] == [EDITED, NEW]
    assert ReviewRun.objects.values_list("writes__0", flat=True).get() == EDITED
    assert ReviewRun.objects.filter(writes__0__state="applied").exists()
    assert not ReviewRun.objects.filter(writes=[]).exists()
