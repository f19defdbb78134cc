"""/api/reviews and /api/sessions/{id}/review"""

from typing import Any

import pytest

from gateway.models import Session
from gateway.services import session_get
from memories.database.access import in_thread
from memories.models import Memory, Owner
from reviews.api import reviews
from reviews.models import ReviewRun
from tests.conftest import Api
from tests.factories import agent_make, key_make
from tests.reviews.talk import adds, review_by, reviewed_session, say
from tests.scripted_model import ScriptedModel


def make_review(owner: Owner, model: ScriptedModel, **settings: Any) -> ReviewRun:
    return review_by(model, owner, adds("Is vegetarian.", "Likes tea."), **settings)


async def test_a_review_is_shown_with_its_writes(alice: Owner, alice_api: Api, model: ScriptedModel) -> None:
    review = await in_thread(make_review, alice, model)
    status, found = await alice_api.get(f"/api/reviews/{review.pk}")
    assert status == 200
    assert {name: found[name] for name in ("id", "object", "session_id", "state", "trigger", "attempts", "model")} == {
        "id": str(review.pk),
        "object": "review",
        "session_id": str(review.session_id),
        "state": "saved",
        "trigger": "interval",
        "attempts": 1,
        "model": "scripted",
    }
    assert (found["error"], found["dropped_calls"], found["change_set"]) == (None, {}, str(review.change_set))
    assert found["usage"]["total_tokens"] == 20
    assert found["started_at"]
    assert found["finished_at"]
    assert found["writes"][0] == {
        "index": 0,
        "action": "add",
        "memory_id": "1",
        "target": "user",
        "category": "general",
        "keywords": [],
        "before": None,
        "after": "Is vegetarian.",
        "state": "applied",
        "reason": "",
        "evidence": {
            "kind": "own_words",
            "quote": "I am a vegetarian.",
            "session_id": str(review.session_id),
            "turn_id": found["writes"][0]["evidence"]["turn_id"],
        },
    }


async def test_reviews_are_listed_newest_first_and_filtered(alice: Owner, alice_api: Api, model: ScriptedModel) -> None:
    first = await in_thread(make_review, alice, model)
    await in_thread(say, await in_thread(Session.objects.get))
    _, found = await alice_api.get("/api/reviews")
    assert [row["state"] for row in found["data"]] == ["scheduled", "saved"]
    _, found = await alice_api.get(f"/api/reviews?state=saved&session_id={first.session_id}")
    assert [row["id"] for row in found["data"]] == [str(first.pk)]
    status, refused = await alice_api.get("/api/reviews?state=lost")
    assert (status, refused["error"]["code"]) == (400, "invalid_request")


async def test_a_review_can_be_requested(alice: Owner, alice_api: Api) -> None:
    session = await in_thread(reviewed_session, alice, memory_review_interval=0)
    path = f"/api/sessions/{session.pk}/review"
    status, refused = await alice_api.post(path)
    assert (status, refused["error"]["code"]) == (409, "conflict")
    await in_thread(say, session)
    status, review = await alice_api.post(path)
    assert (status, review["state"], review["trigger"]) == (202, "scheduled", "request")


async def test_a_session_deleted_after_it_was_looked_up_is_not_found(
    alice: Owner, alice_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await in_thread(reviewed_session, alice, memory_review_interval=0)

    def found_and_deleted(*given: Any, **options: Any) -> Session:
        found = session_get(*given, **options)
        Session.objects.filter(pk=found.pk).delete()
        return found

    monkeypatch.setattr(reviews, "session_get", found_and_deleted)
    status, refused = await alice_api.post(f"/api/sessions/{session.pk}/review")
    assert (status, refused["error"]["code"]) == (404, "not_found")


@pytest.mark.any_database
async def test_a_review_can_be_undone_and_redone(alice: Owner, alice_api: Api, model: ScriptedModel) -> None:
    review = await in_thread(make_review, alice, model)
    status, undone = await alice_api.post(f"/api/reviews/{review.pk}/undo")
    assert (status, undone["undone"], undone["left_alone"]) == (200, ["1", "2"], [])
    assert (await alice_api.get(f"/api/reviews/{review.pk}"))[1]["state"] == "undone"
    status, _ = await alice_api.post(f"/api/changes/{undone['change_set']}/undo")
    assert status == 200
    assert (await alice_api.get(f"/api/reviews/{review.pk}"))[1]["state"] == "saved"
    status, undone = await alice_api.post(f"/api/reviews/{review.pk}/undo", {"writes": [1]})
    assert undone["undone"] == ["2"]


async def test_writes_are_approved_edited_and_rejected(alice: Owner, alice_api: Api, model: ScriptedModel) -> None:
    review = await in_thread(make_review, alice, model, memory_review_approval=True)
    path = f"/api/reviews/{review.pk}"
    status, found = await alice_api.post(f"{path}/approve", {"writes": [1], "edits": {"1": "Likes green tea."}})
    assert (status, found["state"]) == (200, "awaiting_approval")
    status, found = await alice_api.post(f"{path}/reject")
    assert (status, found["state"], [w["state"] for w in found["writes"]]) == (200, "saved", ["rejected", "applied"])
    assert await in_thread(lambda: Memory.objects.get().content) == "Likes green tea."
    status, refused = await alice_api.post(f"{path}/approve")
    assert (status, refused["error"]["code"]) == (409, "conflict")


async def test_an_edit_that_is_too_long_is_refused(alice: Owner, alice_api: Api, model: ScriptedModel) -> None:
    review = await in_thread(make_review, alice, model, memory_review_approval=True)
    edited = {"writes": [1], "edits": {"1": "x" * 4_001}}
    for path, body in (("reviews/{}", edited), ("proposals/{}-1", {"content": "x" * 4_001})):
        status, refused = await alice_api.post(f"/api/{path.format(review.pk)}/approve", body)
        assert (status, refused["error"]["code"]) == (413, "too_large")
    assert await in_thread(lambda: Memory.objects.count()) == 0


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("verb", "body"),
    [
        ("undo", {"writes": [9]}),
        ("undo", {"writes": [True]}),
        ("undo", {"writes": "all"}),
        ("undo", {"write": [0]}),
        ("approve", {"edits": {"x": "y"}}),
        ("approve", {"edits": {"0": ""}}),
        ("approve", {"writes": [9]}),
    ],
)
async def test_an_invalid_body_is_refused(
    alice: Owner, alice_api: Api, model: ScriptedModel, verb: str, body: dict[str, Any]
) -> None:
    review = await in_thread(make_review, alice, model, memory_review_approval=verb == "approve")
    status, refused = await alice_api.post(f"/api/reviews/{review.pk}/{verb}", body)
    assert (status, refused["error"]["code"]) == (400, "invalid_request")


@pytest.mark.any_database
async def test_another_owners_review_is_not_found(alice: Owner, charlie_api: Api, model: ScriptedModel) -> None:
    review = await in_thread(make_review, alice, model)
    assert (await charlie_api.get("/api/reviews"))[1]["data"] == []
    assert (await charlie_api.get(f"/api/reviews/{review.pk}"))[0] == 404
    for verb in ("undo", "approve", "reject"):
        assert (await charlie_api.post(f"/api/reviews/{review.pk}/{verb}"))[0] == 404
    assert (await charlie_api.post(f"/api/changes/{review.change_set}/undo"))[0] == 404
    assert (await charlie_api.post(f"/api/sessions/{review.session_id}/review"))[0] == 404
    assert await in_thread(Memory.objects.filter(deleted_at=None).count) == 2


@pytest.mark.any_database
async def test_a_read_only_key_cannot_decide(alice: Owner, model: ScriptedModel) -> None:
    review = await in_thread(make_review, alice, model)
    reader = Api((await in_thread(key_make, alice, read_only=True))[1])
    assert (await reader.get(f"/api/reviews/{review.pk}"))[0] == 200
    for verb in ("undo", "approve", "reject"):
        assert (await reader.post(f"/api/reviews/{review.pk}/{verb}"))[0] == 403
    assert (await reader.post(f"/api/sessions/{review.session_id}/review"))[0] == 403


async def test_a_key_limited_to_other_agents_cannot_request_a_review(alice: Owner) -> None:
    session = await in_thread(reviewed_session, alice, memory_review_interval=0)
    await in_thread(say, session)
    await in_thread(agent_make, "other")
    limited = Api((await in_thread(key_make, alice, agents=["other"]))[1])
    status, refused = await limited.post(f"/api/sessions/{session.pk}/review")
    assert (status, refused["error"]["code"]) == (404, "not_found")
    assert not await in_thread(ReviewRun.objects.exists)
