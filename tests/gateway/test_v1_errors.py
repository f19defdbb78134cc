"""Errors are one JSON everywhere, with a request id, and say nothing they should not."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient
from django.utils import timezone
from pytest_django.fixtures import Settings

from gateway.api import openai
from gateway.api.errors import error_response
from gateway.errors import RunStopped, SessionBusy, SessionEnded, TooManySteps, UpstreamRefused, UpstreamUnreachable
from gateway.keys import api_key_revoke, api_key_rotate
from gateway.models import Agent, ApiKey, Run
from memories.database.access import in_thread
from memories.errors import DomainError, InvalidRequest, Overloaded, RateLimited
from memories.models import Owner
from tests.conftest import Api
from tests.factories import agent_make, key_make
from tests.gateway.v1 import PATH, ask
from tests.scripted_model import ScriptedModel, calls

pytestmark = pytest.mark.any_database


async def refused(response: Any) -> tuple[int, str]:
    """Status and code of an error that has the contract's form."""
    assert response.headers["content-type"].startswith("application/json")
    assert response.headers["x-request-id"]
    error = json.loads(response.content)["error"]
    assert error.keys() == {"message", "type", "param", "code", "details"}
    assert error["message"]
    return response.status_code, error["code"]


async def test_an_unknown_agent_is_not_found(alice_api: Api, agent: Agent) -> None:
    got = await ask(alice_api, "Hi", model="nobody")
    assert (got.status, got.code, got.json["error"]["param"]) == (404, "model_not_found", "model")
    assert await refused(await alice_api.raw("GET", "/v1/models/nobody")) == (404, "model_not_found")


@pytest.mark.parametrize("said", ["1", 1, "yes"])
async def test_a_turn_that_may_be_meant_as_temporary_is_not_remembered_by_mistake(
    alice_api: Api, agent: Agent, said: Any
) -> None:
    body = {"model": "assistant", "messages": [{"role": "user", "content": "Hi"}], "metadata": {"temporary": said}}
    response = await alice_api.raw("POST", PATH, body)
    assert await refused(response) == (400, "invalid_request")
    assert response.json()["error"]["param"] == "metadata.temporary"


@pytest.mark.parametrize(
    "messages",
    [
        [],
        None,
        "Hi",
        ["Hi"],
        [{"content": "Hi"}],
        [{"role": "wizard", "content": "Hi"}],
        [{"role": "user", "content": " \n"}],
        [{"role": "user", "content": None}],
        [{"role": "user", "content": []}],
        [{"role": "user", "content": [{"type": "text", "text": " "}]}],
        [{"role": "user", "content": ["Hi"]}],
        [{"role": "user", "content": 7}],
    ],
)
async def test_messages_that_say_nothing_are_refused(alice_api: Api, agent: Agent, messages: Any) -> None:
    response = await alice_api.raw("POST", PATH, {"model": "assistant", "messages": messages})
    assert await refused(response) == (400, "invalid_request")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (PATH, {"messages": [{"role": "user", "content": "Hi"}]}),
        ("/v1/completions", {"prompt": "Hi"}),
        ("/v1/responses", {"input": "Hi"}),
    ],
)
@pytest.mark.parametrize("stream", ["false", 0, []])
async def test_whether_to_stream_is_true_or_false(
    alice_api: Api, agent: Agent, path: str, said: dict[str, Any], stream: Any
) -> None:
    response = await alice_api.raw("POST", path, {"model": "assistant", "stream": stream, **said})
    assert await refused(response) == (400, "invalid_request")
    assert response.json()["error"]["param"] == "stream"


@pytest.mark.parametrize(
    ("tools", "param"), [("zz", "tools"), ({}, "tools"), ([7], "tools[0]"), ([{"function": "zz"}], "tools[0].function")]
)
async def test_tools_that_are_none_are_refused(alice_api: Api, agent: Agent, tools: Any, param: str) -> None:
    got = await ask(alice_api, "Hi", tools=tools)
    assert (got.status, got.code, got.json["error"]["param"]) == (400, "invalid_request", param)


async def test_an_empty_message_of_before_is_no_reason_to_refuse(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script("Fine.")
    assert (await ask(alice_api, "", "Hello.", "Hi")).status == 200


async def test_an_oversized_message_is_too_large(alice_api: Api, agent: Agent, settings: Settings) -> None:
    settings.DAYBOOK_MAX_MESSAGE = 10
    got = await ask(alice_api, "12345678901")
    assert (got.status, got.code, got.json["error"]["details"]["limit"]) == (413, "too_large", 10)


async def test_a_message_at_the_limit_is_taken(
    alice_api: Api, agent: Agent, model: ScriptedModel, settings: Settings
) -> None:
    settings.DAYBOOK_MAX_MESSAGE = 10
    model.script("Fine.")
    assert (await ask(alice_api, "1234567890")).status == 200


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b'"text"',
        b"\xff\xfe",
        b'{"model": "assistant"}',
        b'{"messages": [{"role": "user", "content": "Hi"}]}',
        b'{"model": 7, "messages": [{"role": "user", "content": "Hi"}]}',
        b'{"model": "assistant", "temperature": NaN, "messages": [{"role": "user", "content": "Hi"}]}',
        b'{"model": "assistant", "messages": [{"role": "user", "content": "\\ud83d"}]}',
        b"[" * 100_000,
    ],
)
async def test_a_broken_body_is_refused(alice_api: Api, agent: Agent, raw: bytes) -> None:
    response = await alice_api.client.post(PATH, data=raw, content_type="application/json", headers=alice_api.headers)
    assert await refused(response) == (400, "invalid_request")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded"])
@pytest.mark.parametrize("path", [PATH, "/api/sessions"])
async def test_a_body_that_is_not_json_is_refused(alice_api: Api, agent: Agent, kind: str, path: str) -> None:
    response = await alice_api.client.post(path, data=b"{}", content_type=kind, headers=alice_api.headers)
    assert await refused(response) == (415, "unsupported_media_type")


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "APPLICATION/JSON"])
async def test_json_may_be_called_json_in_several_ways(
    alice_api: Api, agent: Agent, model: ScriptedModel, kind: str
) -> None:
    model.script("Fine.")
    raw = json.dumps({"model": "assistant", "messages": [{"role": "user", "content": "Hi"}]})
    response = await alice_api.client.post(PATH, data=raw, content_type=kind, headers=alice_api.headers)
    assert response.status_code == 200


@pytest.mark.parametrize(
    "headers",
    [{}, {"authorization": "Bearer"}, {"authorization": "Bearer dbk_wrong"}, {"authorization": "Basic dbk_x"}],
)
@pytest.mark.parametrize("path", ["/v1/models", "/api/sessions"])
async def test_a_missing_or_wrong_key_is_unauthorized(db: None, headers: dict[str, str], path: str) -> None:
    response = await AsyncClient().get(path, headers=headers)
    assert await refused(response) == (401, "unauthorized")


@pytest.mark.parametrize("header", ["x-api-key", "api-key", "authorization"])
async def test_a_key_may_come_in_three_headers(alice: Owner, agent: Agent, header: str) -> None:
    _, plain = await in_thread(key_make, alice)
    value = f"bearer {plain}" if header == "authorization" else plain
    assert (await AsyncClient().get("/v1/models", headers={header: value})).status_code == 200


async def test_a_key_that_another_process_revoked_is_refused_at_once(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script("Fine.")
    assert (await ask(alice_api, "Hi")).status == 200  # from now on this process knows the key
    await in_thread(lambda: api_key_revoke(ApiKey.objects.get()))
    for body in ({}, {"model": "nobody"}, {"metadata": {"task": "title_generation"}}):
        got = await ask(alice_api, "Hi", **body)
        assert (got.status, got.code) == (401, "unauthorized")
    assert (await alice_api.get("/v1/models"))[0] == 401
    assert (await alice_api.get("/api/sessions"))[0] == 401


async def test_a_key_that_another_process_rotated_is_refused_at_once(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script("Fine.")
    assert (await ask(alice_api, "Hi")).status == 200  # from now on this process knows the key
    await in_thread(lambda: api_key_rotate(ApiKey.objects.get()))
    for body in ({}, {"model": "nobody"}, {"metadata": {"task": "title_generation"}}):
        got = await ask(alice_api, "Hi", **body)
        assert (got.status, got.code) == (401, "unauthorized")


async def test_a_key_is_taken_until_the_overlap_of_its_rotation_is_over(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script("Fine.", "Fine.")
    assert (await ask(alice_api, "Hi")).status == 200
    await in_thread(lambda: api_key_rotate(ApiKey.objects.get(), overlap=timedelta(hours=1)))
    assert (await ask(alice_api, "Hello")).status == 200
    await in_thread(ApiKey.objects.update, previous_until=timezone.now())
    assert (await ask(alice_api, "Hi")).status == 401


async def test_results_of_tools_are_not_taken_with_a_key_that_was_rotated(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    tools = [{"type": "function", "function": {"name": "shell", "parameters": {}}}]
    model.script(calls(("shell", "{}")))
    asked = await ask(alice_api, "Hi", tools=tools)
    message = asked.json["choices"][0]["message"]
    await in_thread(lambda: api_key_rotate(ApiKey.objects.get()))
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "Done."}
    got = await ask(alice_api, "Hi", message, result, tools=tools)
    assert (got.status, got.code) == (401, "unauthorized")


async def test_a_response_is_not_cancelled_with_a_key_that_another_process_revoked(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script("Fine.")
    _, response = await alice_api.post("/v1/responses", {"model": "assistant", "input": "Hi"})
    await in_thread(lambda: api_key_revoke(ApiKey.objects.get()))
    path = f"/v1/responses/{response['id']}/cancel"
    assert await refused(await alice_api.raw("POST", path, {})) == (401, "unauthorized")


async def test_a_key_of_a_deactivated_user_is_refused_at_once(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script("Fine.")
    assert (await ask(alice_api, "Hi")).status == 200
    await in_thread(User.objects.update, is_active=False)
    assert (await ask(alice_api, "Hi")).status == 401


async def test_a_read_only_key_may_look_and_not_chat(alice: Owner, agent: Agent) -> None:
    api = Api((await in_thread(key_make, alice, read_only=True))[1])
    assert (await api.get("/v1/models"))[0] == 200
    got = await ask(api, "Hi")
    assert (got.status, got.code) == (403, "forbidden")
    assert await refused(await api.raw("POST", "/api/sessions", {"agent": "assistant"})) == (403, "forbidden")


async def test_a_key_limited_to_agents_sees_only_those(alice: Owner, agent: Agent, model: ScriptedModel) -> None:
    await in_thread(agent_make, "other")
    api = Api((await in_thread(key_make, alice, agents=["other"]))[1])
    model.script("Fine.")
    assert [row["id"] for row in (await api.get("/v1/models"))[1]["data"]] == ["other"]
    assert (await ask(api, "Hi", model="other")).status == 200
    for got in (await ask(api, "Hi"), await ask(api, "Hi", metadata={"task": "title_generation"})):
        assert (got.status, got.code) == (404, "model_not_found")
    assert (await api.get("/v1/models/assistant"))[0] == 404
    assert (await api.post("/api/sessions", {"agent": "assistant"}))[0] == 404


@pytest.mark.parametrize(
    ("method", "path"), [("GET", PATH), ("DELETE", "/v1/models"), ("PUT", "/api/sessions"), ("PATCH", PATH + "/")]
)
async def test_a_wrong_method_is_said_as_json(alice_api: Api, method: str, path: str) -> None:
    response = await alice_api.raw(method, path)
    assert await refused(response) == (405, "method_not_allowed")
    assert response.headers["allow"]


@pytest.mark.parametrize(
    "path", ["/v1", "/v1/", "/v1/audio/speech", "/v1/models/a/b/c", "/api", "/api/nothing", "/v1/%00"]
)
async def test_an_unknown_address_is_said_as_json(alice_api: Api, path: str) -> None:
    status, code = await refused(await alice_api.raw("GET", path))
    assert (status, code) in {(404, "not_found"), (404, "model_not_found")}


async def test_what_nobody_expected_is_an_internal_error_without_a_trace(
    alice_api: Api, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(openai, "read_body", broken)
    response = await alice_api.raw("POST", PATH, {"model": "assistant", "messages": []})
    assert await refused(response) == (500, "internal_error")
    assert b"secret detail" not in response.content
    assert b"Traceback" not in response.content


async def test_a_fault_in_the_middle_of_a_stream_is_a_last_chunk_and_stands_in_the_log_once(
    alice_api: Api,
    agent: Agent,
    model: ScriptedModel,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(request: Any) -> Any:
        yield {"choices": [{"index": 0, "delta": {"content": "Hel"}}]}
        raise RuntimeError("secret detail")

    monkeypatch.setattr(model, "stream", broken)
    body = {"model": "assistant", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
    status, text = await alice_api.stream(PATH, body)
    assert status == 200
    assert "[DONE]" not in text
    assert "secret detail" not in text
    last = json.loads(text.strip().split("\n")[-1].removeprefix("data: "))
    assert last["error"]["code"] == "internal_error"
    run = await in_thread(Run.objects.get)
    assert [record.getMessage() for record in caplog.records if record.exc_info] == [f"run {run.pk} failed"]


async def test_a_plain_request_id_is_kept(alice_api: Api, agent: Agent) -> None:
    assert (await alice_api.raw("GET", "/v1/models", x_request_id="mine-1")).headers["x-request-id"] == "mine-1"
    odd = (await alice_api.raw("GET", "/v1/models", x_request_id="a b\tc")).headers["x-request-id"]
    assert odd != "a b\tc"


@pytest.mark.parametrize(
    ("wait", "header"), [("0.4", "1"), (2, "2"), ("7", "7"), ("Wed, 21 Oct 2026 07:28:00 GMT",) * 2]
)
def test_retry_after_is_in_whole_seconds_or_a_date(wait: object, header: str) -> None:
    assert error_response(RateLimited("Wait.", retry_after=wait), "/api/sessions")["Retry-After"] == header


@pytest.mark.parametrize("path", [PATH, "/v1/messages", "/v1/responses"])
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (TooManySteps("Eight steps.", steps=8), "false"),
        (SessionEnded("Over."), "false"),
        (RunStopped("Stopped.", run_id="1"), "false"),
        (UpstreamRefused("No key.", status=401), "false"),
        (UpstreamRefused("No credit.", status=402), "false"),
        (RateLimited("Tomorrow.", retry_after=61), "false"),
        (RateLimited("Later.", retry_after="3600"), "false"),
        (RateLimited("Soon.", retry_after=60), None),
        (RateLimited("Soon.", retry_after="odd"), None),
        (RateLimited("Soon."), None),
        (UpstreamRefused("Ill.", status=500), None),
        (UpstreamUnreachable("Gone."), None),
        (SessionBusy("Wait.", run_id="1"), None),
        (Overloaded("Wait.", retry_after=1), None),
        (InvalidRequest("Odd."), None),
    ],
)
def test_clients_are_told_not_to_repeat_what_would_end_the_same_way(
    error: DomainError, told: str | None, path: str
) -> None:
    """The SDKs repeat 409, 429 and 5xx twice of themselves."""
    assert error_response(error, path).headers.get("x-should-retry") == told


async def test_a_turn_without_an_end_is_not_begun_again_by_an_sdk(
    alice_api: Api, agent: Agent, model: ScriptedModel, settings: Settings
) -> None:
    settings.RUN_STEPS = 1
    model.script(calls(("search_memories", '{"query": "tea"}')))
    body = {"model": "assistant", "messages": [{"role": "user", "content": "Hi"}]}
    response = await alice_api.raw("POST", PATH, body)
    assert (response.status_code, response.headers["x-should-retry"]) == (502, "false")
