"""Connecting an app: consent, tokens, refreshing, and what they let it do"""

import json
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import User
from django.test import RequestFactory
from django.utils import timezone
from oauth2_provider.models import AccessToken, RefreshToken

from gateway.limits import key_uses
from gateway.models import ApiKey
from gateway.oauth.connections import app_disconnect
from gateway.oauth.endpoints import token_answer
from gateway.oauth.validator import Validator
from memories.audit.log import SYSTEM
from memories.database.access import in_thread
from memories.models import Memory, Owner
from tests.conftest import Api
from tests.factories import key_make, memory_make
from tests.gateway.oauth_app import CALLBACK, VERIFIER, App, callback_parameters, rpc
from tests.queries import statements


async def connected(owner: Owner, **consent: Any) -> App:
    return await (await App().registered()).connect(owner, **consent)


def found(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [row["content"] for row in answer.json()["result"]["structuredContent"]["memories"]]


async def test_an_app_is_connected_and_calls_tools(alice: Owner) -> None:
    await in_thread(memory_make, alice, "Likes tea.")
    app = await connected(alice)
    assert (app.tokens["token_type"], app.tokens["expires_in"]) == ("Bearer", 3600)
    assert set(app.tokens["scope"].split()) == {"memory:read", "memory:write"}
    assert found(await app.call()) == ["Likes tea."]
    assert (await app.call("add_memory", content="Is vegetarian.", target="user")).status_code == 200
    assert (await in_thread(Memory.objects.get, content="Is vegetarian.")).owner_id == alice.pk


async def test_the_answer_goes_back_with_state_and_issuer(alice: Owner) -> None:
    answer = await (await App().registered()).consent(alice)
    assert answer.headers["Location"].startswith(f"{CALLBACK}?")
    assert (callback_parameters(answer)["state"], callback_parameters(answer)["iss"]) == ("s1", "http://testserver")


async def test_a_token_gets_the_book_that_was_chosen_and_no_other(alice: Owner) -> None:
    await in_thread(memory_make, alice, "Likes tea.")
    await in_thread(memory_make, alice, "Tests with pytest.", book="code")
    app = await connected(alice, book="code")
    everything = rpc("tools/call", name="get_memories", arguments={})
    assert found(await app.post("/mcp", everything)) == ["Tests with pytest."]
    other = await app.post("/mcp", everything, **{"x-daybook-book": "main"})
    assert other.json()["result"]["structuredContent"]["error"] == "not_found"


async def test_an_app_may_not_name_end_users(alice: Owner) -> None:
    """It would show the memories of the person who connected it to all of them."""
    await in_thread(memory_make, alice, "Likes tea.")
    app = await connected(alice)
    everything = rpc("tools/call", name="get_memories", arguments={})
    refused = await app.post("/mcp", everything, **{"x-daybook-user": "eve"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
    assert found(await app.post("/mcp", everything, **{"x-openwebui-user-id": "eve"})) == ["Likes tea."]
    second = await app.post("/mcp", everything, **{"x-openwebui-user-id": "mallory"})
    assert "Likes tea." not in second.content.decode()


async def test_a_reading_app_is_told_which_scope_it_lacks(alice: Owner) -> None:
    app = await connected(alice, rights="read")
    assert app.tokens["scope"] == "memory:read"
    listed = (await app.post("/mcp", rpc("tools/list"))).json()["result"]["tools"]
    assert {tool["name"] for tool in listed} == {"search_memories", "get_memories", "read"}
    refused = await app.call("add_memory", content="Is vegetarian.")
    assert refused.status_code == 403
    header = refused.headers["WWW-Authenticate"]
    assert 'error="insufficient_scope"' in header
    assert 'scope="memory:read memory:write"' in header
    assert 'resource_metadata="http://testserver/.well-known/oauth-protected-resource/mcp"' in header
    assert not await in_thread(Memory.objects.exists)


async def test_a_token_of_a_reading_consent_stays_so_after_a_wider_one(alice: Owner) -> None:
    app = await connected(alice, rights="read")
    await app.consent(alice, rights="write")
    assert (await app.call("add_memory", content="Is vegetarian.")).status_code == 403


@pytest.mark.parametrize("path", ["/api/memories", "/v1/models", "/api/keys"])
async def test_a_token_is_for_mcp_only(alice: Owner, path: str) -> None:
    app = await connected(alice)
    assert (await app.call()).status_code == 200
    answer = await app.client.get(path, headers={"authorization": f"Bearer {app.tokens['access_token']}"})
    assert answer.status_code == 401


async def test_a_token_is_for_the_address_that_it_was_given_for(alice: Owner, settings: Any) -> None:
    app = await connected(alice)
    assert (await app.post("/mcp", rpc("tools/list"))).status_code == 200
    settings.TRUSTED_ORIGINS = ["https://testserver"]
    assert (await app.post("/mcp", rpc("tools/list"))).status_code == 401


async def test_nothing_that_was_given_out_is_stored(alice: Owner) -> None:
    app = await connected(alice)
    access, refresh = await in_thread(AccessToken.objects.get), await in_thread(RefreshToken.objects.get)
    assert (access.token, refresh.token) == ("", "")
    assert app.tokens["access_token"] not in str(access.__dict__)
    assert app.tokens["refresh_token"] not in str(refresh.__dict__)


async def test_looking_up_a_token_takes_one_statement_as_a_key_does(alice: Owner) -> None:
    app = await connected(alice)
    key = Api((await in_thread(key_make, alice))[1])
    counts = []
    for send in (lambda: key.post("/mcp", rpc("ping")), lambda: app.post("/mcp", rpc("ping"))):
        await in_thread(ApiKey.objects.update, last_used_at=timezone.now())
        async with statements() as seen:
            await send()
        counts.append(len(seen))
    assert counts == [1, 1]


async def test_the_last_use_is_noted(alice: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_uses, "_due", 0.0)
    app = await connected(alice)
    assert (await in_thread(ApiKey.objects.get)).last_used_at is None
    await app.call()
    assert (await in_thread(ApiKey.objects.get)).last_used_at is not None


async def test_an_access_token_lasts_an_hour_and_is_refreshed(alice: Owner) -> None:
    app = await connected(alice)
    first = app.tokens
    with time_machine.travel(timezone.now() + timedelta(minutes=61)):
        refused = await app.call()
        assert refused.status_code == 401
        assert 'error="invalid_token"' in refused.headers["WWW-Authenticate"]
        status, app.tokens = await app.refresh(resource="http://testserver/mcp/")
        assert status == 200
        assert app.tokens["refresh_token"] != first["refresh_token"]
        assert set(app.tokens["scope"].split()) == {"memory:read", "memory:write"}
        assert (await app.call()).status_code == 200


async def test_a_refreshed_token_replaces_the_one_before(alice: Owner) -> None:
    app = await connected(alice)
    before = dict(app.tokens)
    _, after = await app.refresh()
    app.tokens = before
    assert (await app.call()).status_code == 401
    app.tokens = after
    assert (await app.call()).status_code == 200


async def test_a_refresh_token_that_is_used_again_ends_its_family(alice: Owner) -> None:
    app = await connected(alice)
    stolen = app.tokens["refresh_token"]
    _, app.tokens = await app.refresh()
    with time_machine.travel(timezone.now() + timedelta(seconds=30)):
        assert await app.refresh(stolen) == (400, {"error": "invalid_grant"})
        assert (await app.call()).status_code == 401
        assert (await app.refresh())[0] == 400


async def test_requests_that_refresh_at_once_all_get_tokens_which_end_together(alice: Owner) -> None:
    """Apps refresh once for each request that finds the token expired, and forget all tokens if one is refused."""
    app = await connected(alice)
    used, given = app.tokens["refresh_token"], []
    for _ in range(3):
        status, tokens = await app.refresh(used)
        assert (status, set(tokens["scope"].split())) == (200, {"memory:read", "memory:write"})
        given.append(tokens)
    assert len({tokens["refresh_token"] for tokens in given}) == 3
    for app.tokens in given:
        assert (await app.call()).status_code == 200
    assert (await app.refresh(given[1]["refresh_token"]))[0] == 200
    with time_machine.travel(timezone.now() + timedelta(seconds=30)):
        assert (await app.refresh(used))[0] == 400
        for app.tokens in given:
            assert (await app.call()).status_code == 401
            assert (await app.refresh())[0] == 400


async def test_a_refresh_token_just_used_gives_nothing_to_another_app_or_after_the_end(alice: Owner) -> None:
    app, other = await connected(alice), await App().registered()
    used = app.tokens["refresh_token"]
    _, app.tokens = await app.refresh()
    assert (await other.refresh(used))[1]["error"] == "invalid_grant"
    assert (await app.refresh(used, resource="https://other.example/mcp"))[1]["error"] == "invalid_target"
    await in_thread(RefreshToken.revoke_family, (await in_thread(RefreshToken.objects.first)).token_family)
    assert (await app.refresh(used))[1]["error"] == "invalid_grant"
    assert (await app.call()).status_code == 401


async def test_a_refresh_token_lasts_thirty_days_without_use(alice: Owner) -> None:
    app = await connected(alice)
    with time_machine.travel(timezone.now() + timedelta(days=29)):
        status, app.tokens = await app.refresh()
        assert status == 200
    with time_machine.travel(timezone.now() + timedelta(days=61)):
        assert (await app.refresh())[0] == 400


async def test_a_code_is_taken_once_with_its_verifier_and_address(alice: Owner) -> None:
    app = await App().registered()
    code = callback_parameters(await app.consent(alice))["code"]
    assert (await app.exchange(code, code_verifier="w" * 64))[1]["error"] == "invalid_grant"
    assert (await app.exchange(code, redirect_uri="https://evil.example/"))[0] == 400
    assert (await app.exchange(code, resource="https://other.example/mcp"))[1]["error"] == "invalid_target"
    assert (await app.exchange(code))[0] == 200
    assert (await app.exchange(code))[1]["error"] == "invalid_grant"


async def test_a_code_that_is_used_again_ends_the_tokens_that_it_gave(alice: Owner) -> None:
    app = await App().registered()
    code = callback_parameters(await app.consent(alice))["code"]
    _, app.tokens = await app.exchange(code)
    for wrong in ({"code_verifier": "w" * 64}, {"redirect_uri": "https://evil.example/"}):
        assert (await app.exchange(code, **wrong))[0] == 400
        assert (await app.call()).status_code == 200  # not the app: it could not have used the code
    assert (await app.exchange(code))[1]["error"] == "invalid_grant"
    assert (await app.call()).status_code == 401
    assert (await app.refresh())[0] == 400
    assert (await in_thread(ApiKey.objects.get)).revoked_at is None


async def test_an_earlier_code_does_not_end_the_tokens_of_a_later_one(alice: Owner) -> None:
    app = await App().registered()
    earlier = callback_parameters(await app.consent(alice))["code"]
    assert (await app.exchange(earlier))[0] == 200
    await app.connect(alice)
    assert (await app.exchange(earlier))[1]["error"] == "invalid_grant"
    assert (await app.call()).status_code == 200


async def test_a_code_is_for_the_app_that_asked(alice: Owner) -> None:
    app, other = await App().registered(), await App().registered()
    code = callback_parameters(await app.consent(alice))["code"]
    assert (await other.exchange(code))[1]["error"] == "invalid_grant"


async def test_a_code_lasts_a_minute(alice: Owner) -> None:
    app = await App().registered()
    code = callback_parameters(await app.consent(alice))["code"]
    with time_machine.travel(timezone.now() + timedelta(seconds=61)):
        assert (await app.exchange(code))[1]["error"] == "invalid_grant"


async def test_a_refresh_token_is_for_the_app_that_got_it(alice: Owner) -> None:
    app, other = await connected(alice), await App().registered()
    assert (await other.refresh(app.tokens["refresh_token"]))[1]["error"] == "invalid_grant"
    assert (await app.refresh(resource="https://other.example/mcp"))[1]["error"] == "invalid_target"


async def test_an_unknown_client_is_told_so_that_it_registers_again(alice: Owner) -> None:
    app = await connected(alice)
    app.client_id = "gone"
    assert await app.refresh() == (401, {"error": "invalid_client"})


@pytest.mark.parametrize(
    "grant_type", ["password", "client_credentials", "urn:ietf:params:oauth:grant-type:device_code"]
)
async def test_other_grants_are_not_offered(alice: Owner, grant_type: str) -> None:
    app = await App().registered()
    status, answer = await app.token(grant_type=grant_type, username="alice", password="alice knows it")
    assert (status, answer["error"]) == (400, "unsupported_grant_type")


async def test_signing_in_again_ends_the_tokens_of_before(alice: Owner) -> None:
    app = await connected(alice)
    before = dict(app.tokens)
    await app.connect(alice)
    assert await in_thread(ApiKey.objects.count) == 1
    app.tokens, after = before, app.tokens
    assert (await app.call()).status_code == 401
    app.tokens = after
    assert (await app.call()).status_code == 200


async def test_an_app_that_revokes_is_disconnected(alice: Owner) -> None:
    app = await connected(alice)
    other = await App().registered()
    assert await other.revoke(app.tokens["refresh_token"]) == 200
    assert (await app.call()).status_code == 200
    assert await app.revoke(app.tokens["refresh_token"]) == 200
    assert (await app.call()).status_code == 401
    assert (await in_thread(ApiKey.objects.get)).revoked_at is not None
    assert (await app.refresh())[0] == 400


async def test_a_disconnected_app_is_refused_at_once(alice: Owner) -> None:
    app = await connected(alice)
    assert (await app.call()).status_code == 200
    await in_thread(lambda: app_disconnect(ApiKey.objects.select_related("owner").get(), by=SYSTEM))
    assert (await app.call()).status_code == 401
    assert (await app.post("/mcp", rpc("tools/list"))).status_code == 401
    assert (await app.refresh())[0] == 400
    assert not await in_thread(AccessToken.objects.exists)


async def test_a_code_of_a_connection_that_was_ended_is_refused(alice: Owner) -> None:
    app = await App().registered()
    code = callback_parameters(await app.consent(alice))["code"]
    await in_thread(ApiKey.objects.update, revoked_at=timezone.now())
    assert (await app.exchange(code))[1]["error"] == "invalid_grant"


async def test_the_tokens_of_a_deactivated_person_stop_at_once(alice: Owner) -> None:
    app = await connected(alice)
    assert (await app.call()).status_code == 200
    await in_thread(User.objects.filter(pk=alice.user_id).update, is_active=False)
    assert (await app.post("/mcp", rpc("tools/list"))).status_code == 401
    assert (await app.refresh())[0] == 400


async def test_of_two_requests_at_the_same_moment_one_gets_tokens_for_a_code_and_both_for_a_refresh_token(
    alice: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = await App().registered()
    code = callback_parameters(await app.consent(alice))["code"]
    given = {"redirect_uri": CALLBACK, "code_verifier": VERIFIER, "client_id": app.client_id}
    by_code = {"grant_type": "authorization_code", "code": code, **given}
    first, app.tokens = await in_thread(both, monkeypatch, "validate_code", by_code)
    assert first == {"error": "invalid_grant"}
    assert (await app.call()).status_code == 200
    by_token = {"grant_type": "refresh_token", "refresh_token": app.tokens["refresh_token"], **given}
    for app.tokens in await in_thread(both, monkeypatch, "validate_refresh_token", by_token):
        assert set(app.tokens["scope"].split()) == {"memory:read", "memory:write"}
        assert (await app.call()).status_code == 200


def both(monkeypatch: pytest.MonkeyPatch, step: str, form: dict[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Send a form, and the same form again while the first one has been checked and nothing is stored yet; the answers
    to the first and to the second, which gets tokens."""
    real, others = getattr(Validator, step), []

    def meanwhile(*args: Any, **kwargs: Any) -> Any:
        valid = real(*args, **kwargs)
        if not others:
            others.append(None)
            others.append(ask(form))
        return valid

    monkeypatch.setattr(Validator, step, meanwhile)
    first, (_, (status, tokens)) = ask(form), others
    monkeypatch.setattr(Validator, step, real)
    assert status == 200, tokens
    return first[1], tokens


def ask(form: dict[str, str]) -> tuple[int, dict[str, Any]]:
    answer = token_answer(RequestFactory().post("/oauth/token", form))
    return answer.status_code, json.loads(answer.content)
