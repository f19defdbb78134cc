"""Which expiry times are accepted, and how they are stored, so that no list fails to read one later"""

import json
from typing import Any

import pytest

from memories.errors import InvalidRequest
from memories.models import Memory, Owner
from tests.conftest import Api
from tests.unsliced import import_text

IMPOSSIBLE = ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "2026-02-30T00:00:00Z"]


@pytest.mark.parametrize("given", IMPOSSIBLE)
async def test_the_api_refuses_times_that_some_databases_cannot_store(alice: Owner, alice_api: Api, given: str) -> None:
    memory = (await alice_api.post("/api/memories", {"content": "Likes tea."}))[1]
    for method, path in (("POST", "/api/memories"), ("PATCH", f"/api/memories/{memory['id']}")):
        status, answer = await alice_api.call(method, path, {"content": "Likes rum.", "expires_at": given})
        assert (status, answer["error"]["code"], answer["error"]["param"]) == (400, "invalid_request", "expires_at")
    assert [row["content"] for row in (await alice_api.get("/api/memories"))[1]["data"]] == ["Likes tea."]


@pytest.mark.parametrize("given", IMPOSSIBLE[:2])
def test_an_import_skips_an_entry_with_such_a_time(alice: Owner, given: str) -> None:
    lines = json.dumps({"content": "Likes rum.", "expires_at": given})
    report = import_text(alice.pk, lines)
    assert (report.refused, report.new, Memory.objects.exists()) == (1, 0, False)


def test_an_import_with_an_impossible_date_is_refused(alice: Owner) -> None:
    lines = json.dumps({"content": "Likes rum.", "expires_at": IMPOSSIBLE[2]})
    with pytest.raises(InvalidRequest, match="Line 1: expires_at"):
        import_text(alice.pk, lines)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("2030-06-01T12:00:00+02:00", "2030-06-01T10:00:00Z"),
        ("2030-06-01T12:00:00", "2030-06-01T12:00:00Z"),
        ("2030-06-01", "2030-06-01T00:00:00Z"),
        (None, None),
    ],
)
async def test_responses_are_in_utc(alice_api: Api, given: Any, stored: Any) -> None:
    status, made = await alice_api.post("/api/memories", {"content": "Likes tea.", "expires_at": given})
    read = (await alice_api.get(f"/api/memories/{made['id']}"))[1]
    assert (status, made["expires_at"], read["expires_at"]) == (201, stored, stored)
