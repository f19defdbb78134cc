"""/api/keys: keys that a person creates, lists, changes, rotates and revokes"""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
import time_machine
from django.utils import timezone

from gateway.authentication import forget_keys
from gateway.keys import MAX_KEYS, api_key_revoke, api_key_rotate, key_find, key_hash
from gateway.models import Agent, ApiKey
from memories.database.access import in_thread
from memories.errors import Conflict
from memories.models import AuditEntry, Owner
from tests.conftest import Api
from tests.factories import agent_make, key_make, owner_make
from tests.gateway.v1 import ask
from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.django_db
SOON = {"expires_at": (timezone.now() + timedelta(days=2)).isoformat()}


async def create_key(api: Api, **fields: Any) -> dict[str, Any]:
    status, key = await api.post("/api/keys", {"name": "laptop", **fields})
    assert status == 201, key
    return dict(key)


async def works(plain: str) -> bool:
    """Return True if a process that has not cached the key accepts it."""
    forget_keys()
    status, _ = await Api(plain).get("/api/sessions")
    assert status in {200, 401}
    return bool(status == 200)


async def test_a_new_key_is_shown_once(alice_api: Api) -> None:
    key = await create_key(alice_api, agents=[], read_only=True)
    assert key["key"].startswith("dbk_")
    assert await works(key["key"])
    _, listed = await alice_api.get("/api/keys")
    assert [row["name"] for row in listed["data"]] == ["laptop", "test"]
    assert {row["object"] for row in listed["data"]} == {"key"}
    _, one = await alice_api.get(f"/api/keys/{key['id']}")
    assert one == {name: value for name, value in key.items() if name != "key"} | {"last_used_at": one["last_used_at"]}
    assert not any("key" in row for row in listed["data"])
    assert key["key"] not in str(listed)


async def test_a_key_needs_a_name_and_existing_agents(alice_api: Api, agent: Agent) -> None:
    for wrong, param in (({"name": " "}, "name"), ({"name": "x" * 81}, "name"), ({"agents": ["nobody"]}, "agents")):
        status, body = await alice_api.post("/api/keys", {"name": "laptop", **wrong})
        assert (status, body["error"]["code"]) == (400, "invalid_request")
        assert param in body["error"]["param"]


async def test_unknown_fields_are_refused(alice_api: Api) -> None:
    key = await create_key(alice_api)
    for unknown in ("trusted", "books", "readonly"):
        for verb, path in (("POST", "/api/keys"), ("PATCH", f"/api/keys/{key['id']}")):
            status, body = await alice_api.call(verb, path, {"name": "laptop", unknown: True})
            assert (status, body["error"]["code"], body["error"]["param"]) == (400, "invalid_request", unknown)
    assert not await in_thread(ApiKey.objects.filter(trusted=True).exists)


async def test_a_key_can_be_changed(alice_api: Api, agent: Agent) -> None:
    await in_thread(agent_make, "coder", book="code")
    key = await create_key(alice_api)
    status, changed = await alice_api.call("PATCH", f"/api/keys/{key['id']}", {"agents": ["coder"], "name": "desk"})
    assert (status, changed["agents"], changed["name"], changed["read_only"]) == (200, ["coder"], "desk", False)
    status, _ = await Api(key["key"]).post("/api/sessions", {"agent": "assistant"})
    assert status == 404
    assert await in_thread(AuditEntry.objects.filter(action="key_change", object_id=key["id"]).count) == 1


async def test_a_key_expires(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    key = await create_key(alice_api, **SOON)
    assert await works(key["key"])
    model.script("Hi.")
    assert (await ask(Api(key["key"]), {"role": "user", "content": "Hi"})).status == 200
    with time_machine.travel(timezone.now() + timedelta(days=3)):
        # The key is still cached, but the transaction that opens a turn checks it again.
        assert (await ask(Api(key["key"]), {"role": "user", "content": "Hi"})).status == 401
        assert not await works(key["key"])
        status, _ = await alice_api.call("PATCH", f"/api/keys/{key['id']}", {"expires_at": None})
        assert status == 200
        assert await works(key["key"])


async def test_an_invalid_expiry_is_refused(alice_api: Api) -> None:
    for end in ("2020-01-01T00:00:00Z", "2030-01-01T00:00:00", "9999-12-31T23:59:59-14:00", "tomorrow"):
        status, body = await alice_api.post("/api/keys", {"name": "laptop", "expires_at": end})
        assert status == 400
        assert "expires_at" in body["error"]["param"]


async def test_the_expiry_is_given_in_utc(alice_api: Api) -> None:
    key = await create_key(alice_api, expires_at="2130-01-01T00:00:00+02:00")
    assert key["expires_at"] == "2129-12-31T22:00:00Z"


async def test_a_key_is_rotated_with_an_overlap(alice_api: Api) -> None:
    key = await create_key(alice_api)
    address = f"/api/keys/{key['id']}/rotate"
    status, rotated = await alice_api.post(address, {"overlap_seconds": 3600})
    assert (status, rotated["id"]) == (200, key["id"])
    assert rotated["key"] != key["key"]
    assert await works(rotated["key"])
    assert await works(key["key"])
    with time_machine.travel(timezone.now() + timedelta(hours=2)):
        assert await works(rotated["key"])
        assert not await works(key["key"])
    response = await alice_api.client.post(
        address, data=b"", content_type="application/json", headers=alice_api.headers
    )
    again = response.json()
    assert not await works(rotated["key"])
    assert not await works(key["key"])
    assert await works(again["key"])
    status, body = await alice_api.post(address, {"overlap_seconds": 10**9})
    assert (status, body["error"]["code"]) == (400, "invalid_request")


async def test_a_key_can_be_revoked(alice_api: Api) -> None:
    key = await create_key(alice_api)
    status, _ = await alice_api.call("DELETE", f"/api/keys/{key['id']}")
    assert (status, await works(key["key"])) == (204, False)
    _, one = await alice_api.get(f"/api/keys/{key['id']}")
    assert one["revoked_at"]
    for method, path, body in (("PATCH", "", {"name": "x"}), ("POST", "/rotate", {})):
        status, answer = await alice_api.call(method, f"/api/keys/{key['id']}{path}", body)
        assert (status, answer["error"]["code"]) == (409, "conflict")


@pytest.mark.parametrize(
    "limits",
    [{"read_only": True}, {"agents": ["assistant"]}, {"requests_per_minute": 100}, SOON],
    ids=["read-only", "agents", "rate", "expiry"],
)
async def test_a_limited_key_cannot_manage_keys(alice_api: Api, agent: Agent, limits: dict[str, Any]) -> None:
    key = await create_key(alice_api, **limits)
    limited = Api(key["key"])
    for method, path, body in (
        ("POST", "", {"name": "mine"}),
        ("PATCH", f"/{key['id']}", {"read_only": False}),
        ("POST", f"/{key['id']}/rotate", {}),
        ("DELETE", f"/{key['id']}", None),
        ("GET", "", None),
    ):
        status, answer = await limited.call(method, f"/api/keys{path}", body)
        assert (status, answer["error"]["code"]) == (403, "forbidden"), method
    assert await in_thread(ApiKey.objects.count) == 2


async def test_an_untrusted_key_cannot_rotate_or_change_a_trusted_one(alice: Owner, alice_api: Api) -> None:
    key, plain = await in_thread(lambda: key_make(alice, trusted=True))
    path = f"/api/keys/{key.pk}"
    for verb, address in (("POST", f"{path}/rotate"), ("PATCH", path)):
        status, body = await alice_api.call(verb, address, {})
        assert (status, body["error"]["code"]) == (403, "forbidden")
    assert await works(plain)
    assert (await Api(plain).post(f"{path}/rotate"))[0] == 200  # a trusted key may


async def test_an_end_user_has_no_keys(alice: Owner, alice_api: Api) -> None:
    _, plain = await in_thread(lambda: key_make(alice, trusted=True))
    for method, body in (("GET", None), ("POST", {"name": "mine"})):
        status, _ = await Api(plain).call(method, "/api/keys", body, x_daybook_user="customer-42")
        assert status == 403


async def test_somebody_elses_key_is_not_found(alice: Owner, alice_api: Api, charlie_api: Api) -> None:
    own: UUID = await in_thread(lambda: ApiKey.objects.get(owner=alice).pk)
    for method, path, body in (("GET", "", None), ("PATCH", "", {"name": "x"}), ("POST", "/rotate", {})):
        assert (await charlie_api.call(method, f"/api/keys/{own}{path}", body))[0] == 404


@pytest.mark.any_database
async def test_the_number_of_keys_is_limited(alice_api: Api, alice: Owner) -> None:
    await in_thread(lambda: [key_make(alice) for _ in range(MAX_KEYS - 1)])
    status, body = await alice_api.post("/api/keys", {"name": "one more"})
    assert (status, body["error"]["details"]["limit"]) == (409, MAX_KEYS)
    other = await in_thread(lambda: key_make(owner_make("dora"))[1])
    assert (await Api(other).post("/api/keys", {"name": "hers"}))[0] == 201


def test_a_key_that_is_rotated_twice_at_once_keeps_the_first_new_text_for_the_overlap(alice: Owner) -> None:
    key, _ = key_make(alice)
    read_before = ApiKey.objects.get(pk=key.pk)
    first = api_key_rotate(key)
    second = api_key_rotate(read_before, overlap=timedelta(hours=1))
    assert [key_find(key_hash(plain)) for plain in (first, second)] == [key, key]


def test_a_key_that_is_revoked_meanwhile_is_not_rotated(alice: Owner) -> None:
    key, _ = key_make(alice)
    read_before = ApiKey.objects.get(pk=key.pk)
    api_key_revoke(key)
    with pytest.raises(Conflict):
        api_key_rotate(read_before)
