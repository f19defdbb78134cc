"""The OAuth flow of an app: consent, tokens, refreshes, and the access they give"""

import json
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import User
from django.test import RequestFactory
from django.utils import timezone
from oauth2_provider.models import AccessToken, RefreshToken

from gateway.jobs import Throttle
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
from tests.gateway.mcp import rpc
from tests.gateway.oauth_app import CALLBACK, VERIFIER, App, callback_parameters
from tests.overlapping import only_postgresql, overlap
from tests.queries import statements


async def connected_app(owner: Owner, **consent: Any) -> App:
    return await (await App().registered()).connect(owner, **consent)


def found_memories(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [row["content"] for row in answer.json()["result"]["structuredContent"]["memories"]]


async def test_a_connected_app_calls_tools(alice: Owner) -> None:
    await in_thread(memory_make, alice, "Likes tea.")
    app = await connected_app(alice)
    assert (app.tokens["token_type"], app.tokens["expires_in"]) == ("Bearer", 3600)
    assert set(app.tokens["scope"].split()) == {"memory:read", "memory:write"}
    assert found_memories(await app.call()) == ["Likes tea."]
    assert (await app.call("add_memory", content="Is vegetarian.", target="user")).status_code == 200
    assert (await in_thread(Memory.objects.get, content="Is vegetarian.")).owner_id == alice.pk


async def test_the_redirect_contains_state_and_issuer(alice: Owner) -> None:
    answer = await (await App().registered()).consent(alice)
    assert answer.headers["Location"].startswith(f"{CALLBACK}?")
    assert (callback_parameters(answer)["state"], callback_parameters(answer)["iss"]) == ("s1", "http://testserver")


async def test_a_token_gives_access_to_the_chosen_book_only(alice: Owner) -> None:
    await in_thread(memory_make, alice, "Likes tea.")
    await in_thread(memory_make, alice, "Tests with pytest.", book="code")
    app = await connected_app(alice, book="code")
    everything = rpc("tools/call", name="get_memories", arguments={})
    assert found_memories(await app.post("/mcp", everything)) == ["Tests with pytest."]
    other = await app.post("/mcp", everything, **{"x-daybook-book": "main"})
    assert other.json()["result"]["structuredContent"]["error"] == "not_found"


async def test_an_app_must_not_name_end_users(alice: Owner) -> None:
    """Otherwise every end user would see the memories of the person who connected it."""
    await in_thread(memory_make, alice, "Likes tea.")
    app = await connected_app(alice)
    everything = rpc("tools/call", name="get_memories", arguments={})
    refused = await app.post("/mcp", everything, **{"x-daybook-user": "eve"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
    assert found_memories(await app.post("/mcp", everything, **{"x-openwebui-user-id": "eve"})) == ["Likes tea."]
    second = await app.post("/mcp", everything, **{"x-openwebui-user-id": "mallory"})
    assert "Likes tea." not in second.content.decode()


async def test_a_read_only_app_is_told_the_missing_scope(alice: Owner) -> None:
    app = await connected_app(alice, rights="read")
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


async def test_a_read_only_token_stays_so_after_a_wider_consent(alice: Owner) -> None:
    app = await connected_app(alice, rights="read")
    await app.consent(alice, rights="write")
    assert (await app.call("add_memory", content="Is vegetarian.")).status_code == 403


@pytest.mark.any_database
@pytest.mark.parametrize("path", ["/api/memories", "/v1/models", "/api/keys"])
async def test_a_token_works_for_mcp_only(alice: Owner, path: str) -> None:
    app = await connected_app(alice)
    assert (await app.call()).status_code == 200
    answer = await app.client.get(path, headers={"authorization": f"Bearer {app.tokens['access_token']}"})
    assert answer.status_code == 401


async def test_a_token_works_only_at_the_address_it_was_issued_for(alice: Owner, settings: Any) -> None:
    app = await connected_app(alice)
    assert (await app.post("/mcp", rpc("tools/list"))).status_code == 200
    settings.TRUSTED_ORIGINS = ["https://testserver"]
    assert (await app.post("/mcp", rpc("tools/list"))).status_code == 401


async def test_no_token_is_stored_in_plain_text(alice: Owner) -> None:
    app = await connected_app(alice)
    access, refresh = await in_thread(AccessToken.objects.get), await in_thread(RefreshToken.objects.get)
    assert (access.token, refresh.token) == ("", "")
    assert app.tokens["access_token"] not in str(access.__dict__)
    assert app.tokens["refresh_token"] not in str(refresh.__dict__)


async def test_looking_up_a_token_takes_one_statement_like_a_key(alice: Owner) -> None:
    app = await connected_app(alice)
    key = Api((await in_thread(key_make, alice))[1])
    counts = []
    for send in (lambda: key.post("/mcp", rpc("ping")), lambda: app.post("/mcp", rpc("ping"))):
        await in_thread(ApiKey.objects.update, last_used_at=timezone.now())
        async with statements() as seen:
            await send()
        counts.append(len(seen))
    assert counts == [1, 1]


async def test_the_last_use_is_recorded(alice: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_uses, "_writes", Throttle())
    app = await connected_app(alice)
    assert (await in_thread(ApiKey.objects.get)).last_used_at is None
    await app.call()
    assert (await in_thread(ApiKey.objects.get)).last_used_at is not None


async def test_an_access_token_lasts_an_hour_and_can_be_refreshed(alice: Owner) -> None:
    app = await connected_app(alice)
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


async def test_a_refreshed_token_replaces_the_previous_one(alice: Owner) -> None:
    app = await connected_app(alice)
    before = dict(app.tokens)
    _, after = await app.refresh()
    app.tokens = before
    assert (await app.call()).status_code == 401
    app.tokens = after
    assert (await app.call()).status_code == 200


@pytest.mark.parametrize("later", [timedelta(seconds=30), timedelta(hours=-2)])  # or after a clock that was ahead
async def test_a_replayed_refresh_token_revokes_its_family(alice: Owner, later: timedelta) -> None:
    app = await connected_app(alice)
    stolen = app.tokens["refresh_token"]
    _, app.tokens = await app.refresh()
    with time_machine.travel(timezone.now() + later):
        assert await app.refresh(stolen) == (400, {"error": "invalid_grant"})
        assert (await app.call()).status_code == 401
        assert (await app.refresh())[0] == 400


async def test_simultaneous_refreshes_all_get_tokens_of_one_family(alice: Owner) -> None:
    """Apps refresh once per request that finds the token expired, and drop all tokens if one refresh is refused."""
    app = await connected_app(alice)
    used_token, received = app.tokens["refresh_token"], []
    for _ in range(3):
        status, tokens = await app.refresh(used_token)
        assert (status, set(tokens["scope"].split())) == (200, {"memory:read", "memory:write"})
        received.append(tokens)
    assert len({tokens["refresh_token"] for tokens in received}) == 3
    for app.tokens in received:
        assert (await app.call()).status_code == 200
    assert (await app.refresh(received[1]["refresh_token"]))[0] == 200
    with time_machine.travel(timezone.now() + timedelta(seconds=30)):
        assert (await app.refresh(used_token))[0] == 400
        for app.tokens in received:
            assert (await app.call()).status_code == 401
            assert (await app.refresh())[0] == 400


async def test_a_just_used_refresh_token_gives_nothing_to_other_apps_or_after_revocation(alice: Owner) -> None:
    app, other = await connected_app(alice), await App().registered()
    used_token = app.tokens["refresh_token"]
    _, app.tokens = await app.refresh()
    assert (await other.refresh(used_token))[1]["error"] == "invalid_grant"
    assert (await app.refresh(used_token, resource="https://other.example/mcp"))[1]["error"] == "invalid_target"
    await in_thread(RefreshToken.revoke_family, (await in_thread(RefreshToken.objects.first)).token_family)
    assert (await app.refresh(used_token))[1]["error"] == "invalid_grant"
    assert (await app.call()).status_code == 401


async def test_a_refresh_token_lasts_thirty_days_without_use(alice: Owner) -> None:
    app = await connected_app(alice)
    with time_machine.travel(timezone.now() + timedelta(days=29)):
        status, app.tokens = await app.refresh()
        assert status == 200
    with time_machine.travel(timezone.now() + timedelta(days=61)):
        assert (await app.refresh())[0] == 400


async def test_a_code_works_once_with_its_verifier_and_redirect(alice: Owner) -> None:
    app = await App().registered()
    code = await app.code(alice)
    assert (await app.exchange(code, code_verifier="w" * 64))[1]["error"] == "invalid_grant"
    assert (await app.exchange(code, redirect_uri="https://evil.example/"))[0] == 400
    assert (await app.exchange(code, resource="https://other.example/mcp"))[1]["error"] == "invalid_target"
    assert (await app.exchange(code))[0] == 200
    assert (await app.exchange(code))[1]["error"] == "invalid_grant"


@pytest.mark.any_database
async def test_a_replayed_code_revokes_the_tokens_it_gave(alice: Owner) -> None:
    app = await App().registered()
    code = await app.code(alice)
    _, app.tokens = await app.exchange(code)
    for wrong in ({"code_verifier": "w" * 64}, {"redirect_uri": "https://evil.example/"}):
        assert (await app.exchange(code, **wrong))[0] == 400
        assert (await app.call()).status_code == 200  # not from the app, which could not have sent these
    assert (await app.exchange(code))[1]["error"] == "invalid_grant"
    assert (await app.call()).status_code == 401
    assert (await app.refresh())[0] == 400
    assert (await in_thread(ApiKey.objects.get)).revoked_at is None


@pytest.mark.any_database
async def test_replaying_an_earlier_code_keeps_later_tokens(alice: Owner) -> None:
    app = await App().registered()
    earlier = await app.code(alice)
    assert (await app.exchange(earlier))[0] == 200
    await app.connect(alice)
    assert (await app.exchange(earlier))[1]["error"] == "invalid_grant"
    assert (await app.call()).status_code == 200


async def test_a_code_belongs_to_the_app_that_requested_it(alice: Owner) -> None:
    app, other = await App().registered(), await App().registered()
    code = await app.code(alice)
    assert (await other.exchange(code))[1]["error"] == "invalid_grant"


async def test_a_code_lasts_a_minute(alice: Owner) -> None:
    app = await App().registered()
    code = await app.code(alice)
    with time_machine.travel(timezone.now() + timedelta(seconds=61)):
        assert (await app.exchange(code))[1]["error"] == "invalid_grant"


async def test_a_refresh_token_belongs_to_its_app(alice: Owner) -> None:
    app, other = await connected_app(alice), await App().registered()
    assert (await other.refresh(app.tokens["refresh_token"]))[1]["error"] == "invalid_grant"
    assert (await app.refresh(resource="https://other.example/mcp"))[1]["error"] == "invalid_target"


async def test_an_unknown_client_gets_invalid_client(alice: Owner) -> None:
    app = await connected_app(alice)
    app.client_id = "gone"
    assert await app.refresh() == (401, {"error": "invalid_client"})


@pytest.mark.parametrize(
    "grant_type", ["password", "client_credentials", "urn:ietf:params:oauth:grant-type:device_code"]
)
async def test_other_grant_types_are_not_supported(alice: Owner, grant_type: str) -> None:
    app = await App().registered()
    status, answer = await app.token(grant_type=grant_type, username="alice", password="alice knows it")
    assert (status, answer["error"]) == (400, "unsupported_grant_type")


@pytest.mark.any_database
async def test_connecting_again_revokes_earlier_tokens(alice: Owner) -> None:
    app = await connected_app(alice)
    before = dict(app.tokens)
    await app.connect(alice)
    assert await in_thread(ApiKey.objects.count) == 1
    app.tokens, after = before, app.tokens
    assert (await app.call()).status_code == 401
    app.tokens = after
    assert (await app.call()).status_code == 200


async def test_an_app_that_revokes_its_token_is_disconnected(alice: Owner) -> None:
    app = await connected_app(alice)
    other = await App().registered()
    assert await other.revoke(app.tokens["refresh_token"]) == 200
    assert (await app.call()).status_code == 200
    assert await app.revoke(app.tokens["refresh_token"]) == 200
    assert (await app.call()).status_code == 401
    assert (await in_thread(ApiKey.objects.get)).revoked_at is not None
    assert (await app.refresh())[0] == 400


@pytest.mark.any_database
async def test_an_app_is_disconnected_by_a_refresh_token_that_still_works(alice: Owner) -> None:
    app = await connected_app(alice)
    used_token = app.tokens["refresh_token"]
    _, app.tokens = await app.refresh()  # by another request of the app, which signs out at this moment
    assert await app.revoke(used_token) == 200
    assert (await app.call()).status_code == 401
    await app.connect(alice)
    used_token = app.tokens["refresh_token"]
    _, app.tokens = await app.refresh()
    with time_machine.travel(timezone.now() + timedelta(seconds=11)):
        assert await app.revoke(used_token) == 200
        assert (await app.call()).status_code == 200  # whoever has a token of the past ends nothing


async def test_a_disconnected_app_is_refused_at_once(alice: Owner) -> None:
    app = await connected_app(alice)
    assert (await app.call()).status_code == 200
    await in_thread(lambda: app_disconnect(ApiKey.objects.select_related("owner").get(), by=SYSTEM))
    assert (await app.call()).status_code == 401
    assert (await app.post("/mcp", rpc("tools/list"))).status_code == 401
    assert (await app.refresh())[0] == 400
    assert not await in_thread(AccessToken.objects.exists)


async def test_a_code_of_an_ended_connection_is_refused(alice: Owner) -> None:
    app = await App().registered()
    code = await app.code(alice)
    await in_thread(ApiKey.objects.update, revoked_at=timezone.now())
    assert (await app.exchange(code))[1]["error"] == "invalid_grant"


async def test_tokens_of_a_deactivated_person_stop_at_once(alice: Owner) -> None:
    app = await connected_app(alice)
    assert (await app.call()).status_code == 200
    await in_thread(User.objects.filter(pk=alice.user_id).update, is_active=False)
    assert (await app.post("/mcp", rpc("tools/list"))).status_code == 401
    assert (await app.refresh())[0] == 400


async def test_of_two_simultaneous_requests_one_gets_tokens_for_a_code_and_both_for_a_refresh_token(
    alice: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = await App().registered()
    code = await app.code(alice)
    given = {"redirect_uri": CALLBACK, "code_verifier": VERIFIER, "client_id": app.client_id}
    by_code = {"grant_type": "authorization_code", "code": code, **given}
    first, app.tokens = await in_thread(send_twice, monkeypatch, "validate_code", by_code)
    assert first == {"error": "invalid_grant"}
    assert (await app.call()).status_code == 200
    by_token = {"grant_type": "refresh_token", "refresh_token": app.tokens["refresh_token"], **given}
    for app.tokens in await in_thread(send_twice, monkeypatch, "validate_refresh_token", by_token):
        assert set(app.tokens["scope"].split()) == {"memory:read", "memory:write"}
        assert (await app.call()).status_code == 200


@only_postgresql
async def test_a_refresh_token_used_while_it_is_validated_is_not_a_reused_one(
    transactional_db: None, alice: Owner
) -> None:
    app = await connected_app(alice)
    form = {"grant_type": "refresh_token", "refresh_token": app.tokens["refresh_token"], "client_id": app.client_id}
    refresh = partial(post_form, form)
    answers = await in_thread(
        partial(overlap, refresh, refresh, pause_after="SELECT oauth2_provider_refreshtoken token_checksum")
    )
    assert [status for status, _ in answers] == [200, 200]
    for _, app.tokens in answers:
        assert (await app.call()).status_code == 200


def send_twice(
    monkeypatch: pytest.MonkeyPatch, step: str, form: dict[str, str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Send a form, and send it again after the first was validated but before anything is stored. Return the answers to
    the first and to the second, which gets tokens."""
    original_step, second_answers = getattr(Validator, step), []

    def step_with_second_request(*args: Any, **kwargs: Any) -> Any:
        valid = original_step(*args, **kwargs)
        if not second_answers:
            second_answers.append(None)
            second_answers.append(post_form(form))
        return valid

    monkeypatch.setattr(Validator, step, step_with_second_request)
    first, (_, (status, tokens)) = post_form(form), second_answers
    monkeypatch.setattr(Validator, step, original_step)
    assert status == 200, tokens
    return first[1], tokens


def post_form(form: dict[str, str]) -> tuple[int, dict[str, Any]]:
    answer = token_answer(RequestFactory().post("/oauth/token", form))
    return answer.status_code, json.loads(answer.content)
