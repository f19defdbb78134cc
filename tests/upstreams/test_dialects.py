"""Dialects: recognised by address, chosen and changed by the environment, listed in docs/upstreams.md."""

import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.conf import settings as django_settings
from pytest_django.fixtures import Settings

from config.environment import ConfigurationError, Environment
from config.upstreams import upstreams
from gateway.upstream import EMBEDDINGS, ModelRequest, OpenAIModel
from gateway.upstream.calls import SHAPES
from gateway.upstream.dialects import ADDRESSES, DIALECTS, PORTS, Dialect, dialect_at, dialect_of
from gateway.upstream_options import DIALECTS as NAMES
from gateway.upstream_options import UpstreamOptions
from tests.upstreams import test_matrix
from tests.upstreams.rules import RULES
from tests.upstreams.server import connect_to

PAGE = (Path(django_settings.BASE_DIR) / "docs" / "upstreams.md").read_text()
LOCAL = "http://127.0.0.1:8080/v1"


def test_the_environment_and_the_gateway_know_the_same_dialects() -> None:
    assert set(NAMES) == set(DIALECTS) == set(RULES)
    assert set(UpstreamOptions.model_fields["call_ids"].annotation.__args__) == set(SHAPES)  # type: ignore[union-attr]
    assert all(dialect.call_ids in SHAPES for dialect in DIALECTS.values())
    assert {*ADDRESSES.values(), *PORTS.values()} <= set(DIALECTS)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://API.MISTRAL.AI/v1", "mistral"),
        ("https://mine.openai.azure.com/openai/v1", "azure"),
        ("https://mine-eastus2.cognitiveservices.azure.com/openai/v1", "azure"),
        ("https://europe-west1-aiplatform.googleapis.com/v1", "gemini"),
        ("http://localhost:11434/v1", "ollama"),
        ("http://192.168.0.7:1234/v1", "lmstudio"),
        ("https://api.mistral.ai.example.org/v1", ""),
        ("https://notapi.mistral.ai.evil/v1", ""),
        ("http://vllm.lan:8000/v1", ""),
        ("", ""),
    ],
)
def test_a_server_is_recognised_by_its_address(url: str, name: str) -> None:
    assert dialect_at(url) == name


def read(monkeypatch: pytest.MonkeyPatch, **variables: str) -> dict[str, dict[str, Any]]:
    for name, value in {"OPENAI_BASE_URL": LOCAL, **variables}.items():
        monkeypatch.setenv(name, value)
    return upstreams(Environment())


def test_dialect_and_options_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    options = {"drop": ["seed"], "set": {"reasoning_effort": "none"}, "alternate_roles": False, "idle_seconds": 7}
    settings.DAYBOOK_UPSTREAMS = read(
        monkeypatch,
        OPENAI_DIALECT="Mistral",
        OPENAI_OPTIONS=json.dumps(options),
        DAYBOOK_UPSTREAM_LOCAL_URL="http://127.0.0.1:11434/v1",
        DAYBOOK_UPSTREAM_LOCAL_OPTIONS='{"headers": {"x-team": "a"}, "query": {"api-version": "1"}}',
    )
    default = dialect_of("default")
    assert (default.name, default.drop[-1], default.alternate_roles, default.system_first) == (
        "mistral",
        "seed",
        False,
        True,
    )
    assert dict(default.set) == {"reasoning_effort": "none"}
    assert dict(default.rename) == dict(DIALECTS["mistral"].rename)
    local = dialect_of("local")
    assert (local.name, local.headers_with("k"), dict(local.query)) == ("ollama", {"x-team": "a"}, {"api-version": "1"})
    assert dialect_of("nobody") == Dialect(name="openai")  # but without OpenAI's own refusals


async def test_headers_query_and_timeouts_are_sent_with_every_request(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"headers": {"x-team": "a"}, "query": {"api-version": "1"}, "connect_seconds": 3.0}
    settings.DAYBOOK_UPSTREAMS = {"default": {"url": LOCAL, "key": "secret", "dialect": "azure", "options": options}}
    sent: list[httpx2.Request] = []

    async def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        return httpx2.Response(200, json={"choices": [{"message": {"content": "Hi."}}], "data": []})

    transport = httpx2.MockTransport(answer)
    connect_to(transport, monkeypatch)
    model = OpenAIModel()
    await model.complete(ModelRequest(upstream="default", model="m", messages=({"role": "user", "content": "Hi"},)))
    await model.embeddings(ModelRequest(upstream="default", model="m", path=EMBEDDINGS))
    for request in sent:
        assert request.headers.items() >= {"x-team": "a", "api-key": "secret"}.items()
        assert request.url.query == b"api-version=1"
    assert [request.extensions["timeout"]["connect"] for request in sent] == [3.0, 3.0]
    await model.close()


HIDDEN = "is a value that is not shown;"
LOCAL_URL = "DAYBOOK_UPSTREAM_LOCAL_URL"
LOCAL_DIALECT = "DAYBOOK_UPSTREAM_LOCAL_DIALECT"


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("OPENAI_DIALECT", "klingon", "OPENAI_DIALECT is 'klingon'; allowed are openai, azure, "),
        (LOCAL_DIALECT, "klingon", f"{LOCAL_DIALECT} is 'klingon'; allowed are openai, azure, "),
        ("OPENAI_OPTIONS", "[1]", f"OPENAI_OPTIONS {HIDDEN} allowed is a JSON object."),
        ("OPENAI_OPTIONS", "{", f"OPENAI_OPTIONS {HIDDEN} allowed is a JSON object."),
        ("OPENAI_OPTIONS", '{"dorp": []}', f"OPENAI_OPTIONS {HIDDEN} dorp is no option; allowed are drop, "),
        ("OPENAI_OPTIONS", '{"drop": "seed"}', f"OPENAI_OPTIONS {HIDDEN} drop: input should be a valid list."),
        ("OPENAI_OPTIONS", '{"drop": ["messages"]}', f"OPENAI_OPTIONS {HIDDEN} messages can't be dropped"),
        ("OPENAI_OPTIONS", '{"call_ids": "ten"}', f"OPENAI_OPTIONS {HIDDEN} call_ids: input should be 'any', "),
        (
            "OPENAI_OPTIONS",
            '{"headers": {"a": "b\\nc"}}',
            f"OPENAI_OPTIONS {HIDDEN} headers: 'a' is no header that can be",
        ),
        (
            "OPENAI_OPTIONS",
            '{"headers": {"a b": "c"}}',
            f"OPENAI_OPTIONS {HIDDEN} headers: 'a b' is no header that can be",
        ),
        (LOCAL_DIALECT, "vllm", f"{LOCAL_URL} is not set, but its dialect is; set both."),
    ],
)
def test_a_wrong_value_is_a_one_line_error_that_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, message: str
) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        read(monkeypatch, **{variable: value})
    assert str(refusal.value).startswith(message)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", DIALECTS)
def test_the_page_lists_every_dialect(name: str) -> None:
    assert row(DIALECTS[name]) in PAGE


def test_the_page_lists_every_tested_situation() -> None:
    names = [name.removeprefix("test_").replace("_s_", "'s ").replace("_", " ") for name in vars(test_matrix)]
    situations = [name for name, function in zip(names, vars(test_matrix), strict=True) if function.startswith("test_")]
    assert len(situations) > 6
    for name, function in vars(test_matrix).items():
        assert not name.startswith("test_") or test_matrix.kinds.mark in function.pytestmark, "it runs for each dialect"
    assert re.findall(r"^- (.*) ✓$", PAGE, re.MULTILINE) == situations


def row(dialect: Dialect) -> str:
    """Return a dialect's row in the table."""
    recognised_by = [host for host, name in ADDRESSES.items() if name == dialect.name]
    recognised_by += [f"port {port}" for port, name in PORTS.items() if name == dialect.name]
    changes = [
        *(f"drops `{name}`" for name in dialect.drop),
        *(f"`{old}` becomes `{new}`" for old, new in dialect.rename.items()),
        *(f"sends the key as `{name}`, too" for name in dialect.headers),
        *(["one system message, first"] if dialect.system_first else []),
        *(["roles alternate"] if dialect.alternate_roles else []),
        *(["no `stream_options`"] if not dialect.stream_options else []),
        *(["results of tools as text"] if dialect.text_results else []),
        *(["never `null` as text"] if not dialect.null_content else []),
        *(["`metadata` only with `store`"] if not dialect.metadata_without_store else []),
        *(
            f"stand-in for a lost `{name}`"
            for name in (*dialect.message_placeholders, *dialect.calls_placeholders, *dialect.call_placeholders)
        ),
    ]
    return f"| `{dialect.name}` | {', '.join(recognised_by)} | `{dialect.call_ids}` | {'; '.join(changes)} |"
