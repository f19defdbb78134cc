"""Authentication: keys that act for end users, rate limits, and cookies"""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.conf import settings
from django.contrib.auth.models import User
from django.test import AsyncClient
from django.utils import timezone

from gateway import authentication
from gateway.keys import api_key_create, key_warnings
from gateway.models import Agent, ApiKey, Session
from memories.database.access import in_thread
from memories.errors import InvalidRequest
from memories.models import Memory, Owner
from memories.services import owner_for_end_user
from tests.conftest import Api
from tests.factories import key_make, memory_make
from tests.gateway.v1 import ask
from tests.scripted_model import ScriptedModel, calls

REMEMBER = calls(("add_memory", '{"content": "Is vegetarian.", "target": "user"}'))


async def trusted_api(owner: Owner, **fields: Any) -> Api:
    return Api((await in_thread(key_make, owner, trusted=True, **fields))[1])


def openwebui_headers(user: str) -> dict[str, str]:
    return {"x_openwebui_user_id": user}


@pytest.mark.parametrize("header", ["x_daybook_user", "x_openwebui_user_id"])
async def test_a_trusted_key_acts_for_end_users(alice: Owner, agent: Agent, model: ScriptedModel, header: str) -> None:
    api = await trusted_api(alice)
    model.script(REMEMBER, "Noted.", "Hello.", "Hello.")
    response = await ask(api, "I'm vegetarian", headers={header: "u1"})
    await ask(api, "Hi", headers={header: "u2"})
    await ask(api, "Hi")
    owner = await in_thread(lambda: Session.objects.select_related("owner").get(pk=response.session).owner)
    assert (owner.parent_id, owner.external_id, owner.user_id) == (alice.pk, "u1", None)
    assert "Is vegetarian." not in str(model.calls[2].messages) + str(model.calls[3].messages)
    assert await in_thread(Session.objects.values("owner").distinct().count) == 3


async def test_end_users_survive_the_replacement_of_a_key(alice: Owner, agent: Agent, model: ScriptedModel) -> None:
    model.script("Hello.", "Yes.")
    first = await ask(await trusted_api(alice), "Hi", headers={"x_daybook_user": "u1"})
    second = await ask(await trusted_api(alice), "Hi", "Hello.", "more", headers={"x_daybook_user": "u1"})
    assert first.session == second.session


async def test_an_end_user_sees_only_their_own(alice: Owner, agent: Agent) -> None:
    api = await trusted_api(alice)
    await in_thread(memory_make, alice, "Likes tea.")
    theirs = await in_thread(owner_for_end_user, parent=alice, namespace="daybook", external_id="u1")
    await in_thread(memory_make, theirs, "Likes coffee.")
    _, listed = await api.call("GET", "/api/memories", x_daybook_user="u1")
    assert [row["content"] for row in listed["data"]] == ["Likes coffee."]
    _, own = await api.call("GET", "/api/memories")
    assert [row["content"] for row in own["data"]] == ["Likes tea."]


@pytest.mark.any_database
@pytest.mark.parametrize("ending", ["\xa0", "\x85", "à".encode().decode("latin1")])
async def test_ids_that_differ_only_in_rare_white_space_name_different_people(
    alice: Owner, agent: Agent, ending: str
) -> None:
    api = await trusted_api(alice)
    plain = ("u1" + ending).strip()
    theirs = await in_thread(owner_for_end_user, parent=alice, namespace="daybook", external_id=plain)
    await in_thread(memory_make, theirs, "Likes coffee.")
    for external_id, expected in ((plain, 1), (f" {plain}\t", 1), ("u1" + ending, 0)):
        _, listed = await api.call("GET", "/api/memories", x_daybook_user=external_id)
        assert len(listed["data"]) == expected, external_id


async def test_an_untrusted_key_must_not_name_end_users(alice_api: Api, agent: Agent) -> None:
    for path in ("/v1/models", "/api/sessions"):
        status, body = await alice_api.call("GET", path, x_daybook_user="u1")
        assert (status, body["error"]["code"]) == (403, "forbidden")
    assert (await ask(alice_api, "Hi", headers={"x_daybook_user": "u1"})).status == 403


@pytest.mark.parametrize("header", ["x_daybook_user", "x_openwebui_user_id"])
@pytest.mark.parametrize("value", ["", "  "])
async def test_an_empty_end_user_id_does_not_fall_back_to_the_key_owner(alice: Owner, header: str, value: str) -> None:
    headers = {header: value}
    api = await trusted_api(alice)
    for path, sent in (("/v1/models", None), ("/api/memories", None), ("/api/memories", {"content": "x" * 70_000})):
        status, body = await api.call("POST" if sent else "GET", path, sent, **headers)
        assert (status, body["error"]["code"]) == (400, "invalid_request")
        assert header.replace("_", "-") in body["error"]["message"]


async def test_a_too_long_end_user_id_is_refused(alice: Owner, agent: Agent) -> None:
    status, body = await (await trusted_api(alice)).call("GET", "/v1/models", x_daybook_user="x" * 256)
    assert (status, body["error"]["code"]) == (400, "invalid_request")


async def test_an_untrusted_key_with_one_end_user_has_memory(
    alice: Owner, alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script(REMEMBER, "Noted.", "You are.")
    await ask(alice_api, "I'm vegetarian", headers=openwebui_headers("u1"))
    await ask(alice_api, "Am I?", headers=openwebui_headers("u1"))
    assert "Is vegetarian." in str(model.calls[2].messages)
    assert await in_thread(key_warnings, alice.pk) == []


async def test_an_untrusted_key_with_two_end_users_has_no_memory_for_them(
    alice: Owner, alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script(REMEMBER, "Noted.", "Who knows.", "Who knows.", "You are.")
    await ask(alice_api, "I'm vegetarian", headers=openwebui_headers("u1"))
    await ask(alice_api, "Am I vegetarian?", headers=openwebui_headers("u2"))
    authentication.forget_keys()  # other processes drop their cached keys within a minute
    await ask(alice_api, "Am I vegetarian, too?", headers=openwebui_headers("u1"))
    for call in model.calls[2:4]:
        assert "Is vegetarian." not in str(call.messages)
        assert call.tools == ()
    sessions = await in_thread(lambda: list(Session.objects.order_by("id").values_list("temporary", flat=True)))
    assert sessions == [False, True, True]
    # Requests without an end user are the key owner's own.
    await ask(alice_api, "And I?")
    assert "Is vegetarian." in str(model.calls[4].messages)
    (warning,) = await in_thread(key_warnings, alice.pk)
    assert "several end users" in warning
    _, health = await alice_api.get("/api/memories/health")
    assert warning in health["data"][0]["text"]
    key = await in_thread(ApiKey.objects.get)
    assert key.end_users_mixed_at
    assert "u1" not in key.end_user_seen


async def test_the_native_api_has_no_memory_for_mixed_end_users_either(
    alice_api: Api, agent: Agent, session: Session, model: ScriptedModel
) -> None:
    await in_thread(ApiKey.objects.update, end_users_mixed_at=timezone.now())
    model.script("Hello.")
    path = f"/api/sessions/{session.pk}/turns"
    assert (await alice_api.post(path, {"content": "Hi"}, x_openwebui_user_id="u1"))[0] == 200
    assert model.calls[0].tools == ()


@pytest.mark.parametrize("command", ["/memory view", "/memory clear", "/memory rebuild"])
async def test_memory_commands_do_nothing_for_mixed_end_users(
    alice: Owner, alice_api: Api, session: Session, command: str
) -> None:
    await in_thread(memory_make, alice, "Is vegetarian.")
    await in_thread(ApiKey.objects.update, end_users_mixed_at=timezone.now())
    status, body = await alice_api.post(
        f"/api/sessions/{session.pk}/turns", {"content": command}, x_openwebui_user_id="u2"
    )
    assert status == 200
    assert body["content"].startswith("Temporary session.")


async def test_requests_per_minute_are_limited(alice: Owner, agent: Agent, model: ScriptedModel) -> None:
    api = Api((await in_thread(key_make, alice, requests_per_minute=3))[1])
    other = Api((await in_thread(key_make, alice, requests_per_minute=3))[1])
    model.script("Fine.")
    assert (await ask(api, "Hi")).status == 200
    assert [(await api.get(path))[0] for path in ("/v1/models", "/api/sessions")] == [200, 200]
    response = await api.raw("GET", "/v1/models")
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["type"]) == (429, "rate_limited", "rate_limit_error")
    assert 1 <= int(response.headers["retry-after"]) <= 60
    assert error["details"]["limit"] == 3
    assert (await other.get("/v1/models"))[0] == 200
    if settings.REDIS_URL:
        return  # Redis uses its own clock
    with time_machine.travel(timezone.now() + timedelta(minutes=2)):
        assert (await api.get("/v1/models"))[0] == 200


async def test_a_key_belongs_to_a_user(alice: Owner) -> None:
    end_user = await in_thread(owner_for_end_user, parent=alice, namespace="daybook", external_id="u1")
    with pytest.raises(InvalidRequest):
        await in_thread(api_key_create, owner=end_user, name="no")


async def logged_in(owner: Owner, **fields: Any) -> AsyncClient:
    client = AsyncClient(**fields)
    user = await in_thread(User.objects.get, pk=owner.user_id)
    await in_thread(client.force_login, user)
    return client


async def test_a_cookie_may_read_but_needs_csrf_to_write(alice: Owner, agent: Agent) -> None:
    client = await logged_in(alice, enforce_csrf_checks=True)
    assert (await client.get("/api/sessions")).status_code == 200
    body = {"agent": "assistant"}
    refused = await client.post("/api/sessions", body, content_type="application/json")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
    client.cookies["daybook_csrf"] = "a" * 32
    accepted = await client.post(
        "/api/sessions", body, content_type="application/json", headers={"x-csrftoken": "a" * 32}
    )
    assert accepted.status_code == 201


@pytest.mark.parametrize(
    ("content_type", "body", "status"),
    [
        ("multipart/form-data", "x", 415),
        ("application/x-www-form-urlencoded; charset=utf-7", "x", 415),
        ("application/x-www-form-urlencoded", "&" * 2_000, 415),
        ("multipart/form-data", "", 400),
        ("application/x-www-form-urlencoded; charset=utf-7", "", 400),
    ],
)
async def test_a_malformed_form_with_a_cookie_is_a_client_error(
    alice: Owner, content_type: str, body: str, status: int
) -> None:
    client = await logged_in(alice, enforce_csrf_checks=True)
    client.cookies["daybook_csrf"] = "a" * 32
    answer = await client.generic(
        "POST", "/api/sessions", body, content_type=content_type, headers={"content-type": content_type}
    )
    assert answer.status_code == status


@pytest.mark.any_database
@pytest.mark.parametrize(("given", "status"), [("customer-42", 403), ("", 400)])
async def test_a_login_may_not_name_end_users(alice: Owner, given: str, status: int) -> None:
    """It would act on the memories of the person who is signed in."""
    await in_thread(memory_make, alice)
    client = await logged_in(alice)
    for method, path in (("get", "/api/memories"), ("delete", "/api/account/memories")):
        response = await getattr(client, method)(path, headers={"X-Daybook-User": given})
        assert response.status_code == status
    assert await in_thread(Memory.objects.count) == 1


async def test_an_invalid_key_never_falls_back_to_the_cookie(alice: Owner, agent: Agent) -> None:
    client = await logged_in(alice)
    assert (await client.get("/api/sessions", headers={"x-api-key": "dbk_wrong"})).status_code == 401


async def test_v1_accepts_keys_only(alice: Owner, agent: Agent) -> None:
    client = await logged_in(alice)
    refused = await client.get("/v1/models")
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")


async def test_a_deactivated_user_is_refused(alice: Owner, agent: Agent) -> None:
    client = await logged_in(alice)
    await in_thread(User.objects.update, is_active=False)
    assert (await client.get("/api/sessions")).status_code == 401


async def test_a_memory_belongs_to_the_end_user_who_asked_for_it(
    alice: Owner, agent: Agent, model: ScriptedModel
) -> None:
    api = await trusted_api(alice)
    model.script(REMEMBER, "Noted.")
    await ask(api, "I'm vegetarian", headers={"x_daybook_user": "u1"})
    memory = await in_thread(Memory.objects.select_related("owner").get)
    assert memory.owner.external_id == "u1"


async def test_a_read_only_key_may_search(alice: Owner) -> None:
    await in_thread(memory_make, alice, "Likes tea.")
    reader = Api((await in_thread(key_make, alice, read_only=True))[1])
    for path in ("/api/memories/search", "/api/memories/search/"):
        status, found = await reader.post(path, {"query": "tea"})
        assert (status, [row["content"] for row in found["data"]]) == (200, ["Likes tea."])
    assert (await reader.post("/api/memories", {"content": "Likes rum."}))[0] == 403
