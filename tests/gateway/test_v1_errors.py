"""Errors have one JSON format everywhere, with a request ID, and reveal no internals"""

import gzip
import json
from collections.abc import Callable
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
from tests.gateway.played import Plays, plays
from tests.gateway.v1 import PATH, ask
from tests.scripted_model import ScriptedModel, calls

pytestmark = pytest.mark.any_database
__all__ = ["plays"]  # a fixture


async def error_of(response: Any) -> tuple[int, str]:
    """Return status and code of an error, after checking its format."""
    assert response.headers["content-type"].startswith("application/json")
    assert response.headers["x-request-id"]
    error = json.loads(response.content)["error"]
    assert error.keys() == {"message", "type", "param", "code", "details"}
    assert error["message"]
    return response.status_code, error["code"]


async def test_an_unknown_agent_is_not_found(alice_api: Api, agent: Agent) -> None:
    response = await ask(alice_api, "Hi", model="nobody")
    assert (response.status, response.code, response.json["error"]["param"]) == (404, "model_not_found", "model")
    assert await error_of(await alice_api.raw("GET", "/v1/models/nobody")) == (404, "model_not_found")


async def test_an_error_is_readable_as_it_is_sent(alice_api: Api, agent: Agent) -> None:
    """Many clients, such as those of MCP, print the body of an error."""
    request = {"model": "Müller", "messages": [{"role": "user", "content": "Hi"}]}
    response = await alice_api.raw("POST", PATH, request)
    assert "There is no agent called Müller." in response.content.decode()


@pytest.mark.parametrize("said", ["1", 1, "yes"])
async def test_an_ambiguous_temporary_flag_is_refused(alice_api: Api, agent: Agent, said: Any) -> None:
    body = {"model": "assistant", "messages": [{"role": "user", "content": "Hi"}], "metadata": {"temporary": said}}
    response = await alice_api.raw("POST", PATH, body)
    assert await error_of(response) == (400, "invalid_request")
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
async def test_empty_and_malformed_messages_are_refused(alice_api: Api, agent: Agent, messages: Any) -> None:
    response = await alice_api.raw("POST", PATH, {"model": "assistant", "messages": messages})
    assert await error_of(response) == (400, "invalid_request")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (PATH, {"messages": [{"role": "user", "content": "Hi"}]}),
        ("/v1/completions", {"prompt": "Hi"}),
        ("/v1/responses", {"input": "Hi"}),
    ],
)
@pytest.mark.parametrize("stream", ["false", 0, []])
async def test_stream_must_be_a_boolean(
    alice_api: Api, agent: Agent, path: str, said: dict[str, Any], stream: Any
) -> None:
    response = await alice_api.raw("POST", path, {"model": "assistant", "stream": stream, **said})
    assert await error_of(response) == (400, "invalid_request")
    assert response.json()["error"]["param"] == "stream"


@pytest.mark.parametrize(
    ("tools", "param"), [("zz", "tools"), ({}, "tools"), ([7], "tools[0]"), ([{"function": "zz"}], "tools[0].function")]
)
async def test_malformed_tools_are_refused(alice_api: Api, agent: Agent, tools: Any, param: str) -> None:
    response = await ask(alice_api, "Hi", tools=tools)
    assert (response.status, response.code, response.json["error"]["param"]) == (400, "invalid_request", param)


async def test_an_earlier_empty_message_is_accepted(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script("Fine.")
    assert (await ask(alice_api, "", "Hello.", "Hi")).status == 200


async def test_a_message_over_the_limit_is_refused(
    alice_api: Api, agent: Agent, model: ScriptedModel, settings: Settings
) -> None:
    settings.DAYBOOK_MAX_MESSAGE = 10
    response = await ask(alice_api, "12345678901")
    assert (response.status, response.code, response.json["error"]["details"]["limit"]) == (413, "too_large", 10)
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
async def test_a_malformed_body_is_refused(alice_api: Api, agent: Agent, raw: bytes) -> None:
    response = await alice_api.client.post(PATH, data=raw, content_type="application/json", headers=alice_api.headers)
    assert await error_of(response) == (400, "invalid_request")


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded"])
@pytest.mark.parametrize("path", [PATH, "/api/sessions"])
async def test_a_content_type_other_than_json_is_refused(
    alice_api: Api, agent: Agent, content_type: str, path: str
) -> None:
    response = await alice_api.client.post(path, data=b"{}", content_type=content_type, headers=alice_api.headers)
    assert await error_of(response) == (415, "unsupported_media_type")


@pytest.mark.parametrize("path", [PATH, "/api/sessions"])
async def test_a_compressed_body_is_refused_by_its_encoding(alice_api: Api, agent: Agent, path: str) -> None:
    headers = {**alice_api.headers, "content-encoding": "gzip"}
    response = await alice_api.client.post(
        path, data=gzip.compress(b"{}"), content_type="application/json", headers=headers
    )
    assert await error_of(response) == (415, "unsupported_media_type")


@pytest.mark.parametrize("encoding", ["", "identity", "UTF-8"])
async def test_a_content_encoding_that_is_no_compression_is_ignored(
    alice_api: Api, agent: Agent, encoding: str
) -> None:
    """Some programs name the character set there."""
    status, _ = await alice_api.post("/api/sessions", {"agent": "assistant"}, content_encoding=encoding)
    assert status == 201


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "APPLICATION/JSON"])
async def test_variants_of_the_json_content_type_are_accepted(
    alice_api: Api, agent: Agent, model: ScriptedModel, content_type: str
) -> None:
    model.script("Fine.")
    raw = json.dumps({"model": "assistant", "messages": [{"role": "user", "content": "Hi"}]})
    response = await alice_api.client.post(PATH, data=raw, content_type=content_type, headers=alice_api.headers)
    assert response.status_code == 200


@pytest.mark.parametrize(
    "headers",
    [{}, {"authorization": "Bearer"}, {"authorization": "Bearer dbk_wrong"}, {"authorization": "Basic dbk_x"}],
)
@pytest.mark.parametrize("path", ["/v1/models", "/api/sessions"])
async def test_a_missing_or_invalid_key_is_unauthorized(db: None, headers: dict[str, str], path: str) -> None:
    response = await AsyncClient().get(path, headers=headers)
    assert await error_of(response) == (401, "unauthorized")


@pytest.mark.parametrize("header", ["x-api-key", "api-key", "authorization"])
async def test_a_key_is_accepted_in_three_headers(alice: Owner, agent: Agent, header: str) -> None:
    _, plain = await in_thread(key_make, alice)
    value = f"bearer {plain}" if header == "authorization" else plain
    assert (await AsyncClient().get("/v1/models", headers={header: value})).status_code == 200


@pytest.mark.parametrize("change", [api_key_revoke, api_key_rotate])
async def test_a_key_revoked_or_rotated_by_another_process_is_refused_at_once(
    alice_api: Api, agent: Agent, model: ScriptedModel, change: Callable[[ApiKey], Any]
) -> None:
    model.script("Fine.")
    assert (await ask(alice_api, "Hi")).status == 200  # caches the key in this process
    await in_thread(lambda: change(ApiKey.objects.get()))
    for body in ({}, {"model": "nobody"}, {"metadata": {"task": "title_generation"}}):
        response = await ask(alice_api, "Hi", **body)
        assert (response.status, response.code) == (401, "unauthorized")
    assert (await alice_api.get("/v1/models"))[0] == 401
    assert (await alice_api.get("/api/sessions"))[0] == 401


async def test_a_rotated_key_is_accepted_until_its_overlap_ends(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script("Fine.", "Fine.")
    assert (await ask(alice_api, "Hi")).status == 200
    await in_thread(lambda: api_key_rotate(ApiKey.objects.get(), overlap=timedelta(hours=1)))
    assert (await ask(alice_api, "Hello")).status == 200
    await in_thread(ApiKey.objects.update, previous_until=timezone.now())
    assert (await ask(alice_api, "Hi")).status == 401


async def test_tool_results_with_a_rotated_key_are_refused(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    tools = [{"type": "function", "function": {"name": "shell", "parameters": {}}}]
    model.script(calls(("shell", "{}")))
    asked = await ask(alice_api, "Hi", tools=tools)
    message = asked.json["choices"][0]["message"]
    await in_thread(lambda: api_key_rotate(ApiKey.objects.get()))
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "Done."}
    response = await ask(alice_api, "Hi", message, result, tools=tools)
    assert (response.status, response.code) == (401, "unauthorized")


async def test_cancelling_a_response_with_a_revoked_key_is_refused(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script("Fine.")
    _, response = await alice_api.post("/v1/responses", {"model": "assistant", "input": "Hi"})
    await in_thread(lambda: api_key_revoke(ApiKey.objects.get()))
    path = f"/v1/responses/{response['id']}/cancel"
    assert await error_of(await alice_api.raw("POST", path, {})) == (401, "unauthorized")


async def test_a_key_of_a_deactivated_user_is_refused_at_once(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script("Fine.")
    assert (await ask(alice_api, "Hi")).status == 200
    await in_thread(User.objects.update, is_active=False)
    assert (await ask(alice_api, "Hi")).status == 401


async def test_a_read_only_key_may_read_but_not_chat(alice: Owner, agent: Agent) -> None:
    api = Api((await in_thread(key_make, alice, read_only=True))[1])
    assert (await api.get("/v1/models"))[0] == 200
    response = await ask(api, "Hi")
    assert (response.status, response.code) == (403, "forbidden")
    assert await error_of(await api.raw("POST", "/api/sessions", {"agent": "assistant"})) == (403, "forbidden")


async def test_a_limited_key_sees_its_agents_only(alice: Owner, agent: Agent, model: ScriptedModel) -> None:
    await in_thread(agent_make, "other")
    api = Api((await in_thread(key_make, alice, agents=["other"]))[1])
    model.script("Fine.")
    assert [row["id"] for row in (await api.get("/v1/models"))[1]["data"]] == ["other"]
    assert (await ask(api, "Hi", model="other")).status == 200
    for response in (await ask(api, "Hi"), await ask(api, "Hi", metadata={"task": "title_generation"})):
        assert (response.status, response.code) == (404, "model_not_found")
    assert (await api.get("/v1/models/assistant"))[0] == 404
    assert (await api.post("/api/sessions", {"agent": "assistant"}))[0] == 404


@pytest.mark.parametrize(
    ("method", "path"), [("GET", PATH), ("DELETE", "/v1/models"), ("PUT", "/api/sessions"), ("PATCH", PATH + "/")]
)
async def test_an_unsupported_method_is_a_json_error(alice_api: Api, method: str, path: str) -> None:
    response = await alice_api.raw(method, path)
    assert await error_of(response) == (405, "method_not_allowed")
    assert response.headers["allow"]


@pytest.mark.parametrize(
    "path", ["/v1", "/v1/", "/v1/audio/speech", "/v1/models/a/b/c", "/api", "/api/nothing", "/v1/%00"]
)
async def test_an_unknown_path_is_a_json_error(alice_api: Api, path: str) -> None:
    status, code = await error_of(await alice_api.raw("GET", path))
    assert (status, code) in {(404, "not_found"), (404, "model_not_found")}


async def test_an_unexpected_exception_is_an_internal_error_without_a_traceback(
    alice_api: Api, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(openai, "read_body", fail)
    response = await alice_api.raw("POST", PATH, {"model": "assistant", "messages": []})
    assert await error_of(response) == (500, "internal_error")
    assert b"secret detail" not in response.content
    assert b"Traceback" not in response.content


async def test_a_failure_during_a_stream_is_its_last_chunk_and_logged_once(
    alice_api: Api, agent: Agent, plays: Plays, caplog: pytest.LogCaptureFixture
) -> None:
    plays(["Hel", RuntimeError("secret detail")])
    body = {"model": "assistant", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
    status, text = await alice_api.stream(PATH, body)
    assert status == 200
    assert "[DONE]" not in text
    assert "secret detail" not in text
    last = json.loads(text.strip().split("\n")[-1].removeprefix("data: "))
    assert last["error"]["code"] == "internal_error"
    run = await in_thread(Run.objects.get)
    assert [record.getMessage() for record in caplog.records if record.exc_info] == [f"run {run.pk} failed"]


async def test_a_simple_request_id_is_kept(alice_api: Api, agent: Agent) -> None:
    assert (await alice_api.raw("GET", "/v1/models", x_request_id="mine-1")).headers["x-request-id"] == "mine-1"
    replaced = (await alice_api.raw("GET", "/v1/models", x_request_id="a b\tc")).headers["x-request-id"]
    assert replaced != "a b\tc"


@pytest.mark.parametrize(
    ("wait", "header"),
    [(0.4, "1"), (2, "2"), (86_400, "86400"), (0, None), (-5, None), (float("nan"), None), ("soon", None)],
)
def test_retry_after_is_whole_seconds(wait: object, header: str | None) -> None:
    assert error_response(RateLimited("Wait.", retry_after=wait), "/api/sessions").get("Retry-After") == header


@pytest.mark.parametrize("path", [PATH, "/v1/messages", "/v1/responses"])
@pytest.mark.parametrize(
    ("error", "should_retry"),
    [
        (TooManySteps("Eight steps.", steps=8), "false"),
        (SessionEnded("Over."), "false"),
        (RunStopped("Stopped.", run_id="1"), "false"),
        (UpstreamRefused("No key.", status=401), "false"),
        (UpstreamRefused("No credit.", status=402), "false"),
        (RateLimited("Tomorrow.", retry_after=61), "false"),
        (RateLimited("Later.", retry_after=3600), "false"),
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
def test_x_should_retry_stops_pointless_retries(error: DomainError, should_retry: str | None, path: str) -> None:
    """The SDKs retry 409, 429 and 5xx twice on their own."""
    assert error_response(error, path).headers.get("x-should-retry") == should_retry


async def test_sdks_are_told_not_to_retry_a_turn_with_too_many_steps(
    alice_api: Api, agent: Agent, model: ScriptedModel, settings: Settings
) -> None:
    settings.RUN_STEPS = 1
    model.script(calls(("search_memories", '{"query": "tea"}')))
    body = {"model": "assistant", "messages": [{"role": "user", "content": "Hi"}]}
    response = await alice_api.raw("POST", PATH, body)
    assert (response.status_code, response.headers["x-should-retry"]) == (502, "false")
