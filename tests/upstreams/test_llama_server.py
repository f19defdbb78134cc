"""llama-cpp-python's real server with a tiny model of random weights.

The package is not a requirement. LLAMA_PYTHON may name another interpreter that has `llama-cpp-python[server]` and
`gguf`."""

import os
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from pytest_django.fixtures import Settings

from gateway import upstream as upstreams
from gateway.models import Agent
from gateway.upstream import OpenAIModel, ResilientModel
from tests.conftest import Api, free_port
from tests.gateway.v1 import ask, stream, streamed_and_not
from tests.waiting import eventually

pytestmark = pytest.mark.any_database

MODEL_MAKER = Path(__file__).parent / "tiny_model.py"
PYTHON = os.environ.get("LLAMA_PYTHON", sys.executable)
START_SECONDS = 120
LOOKUP = {
    "type": "function",
    "function": {
        "name": "lookup",
        "parameters": {"type": "object", "properties": {"found": {"type": "boolean"}}, "required": ["found"]},
    },
}
FORCED = {"type": "function", "function": {"name": "lookup"}}
USER = {"role": "user", "content": "Is there tea?"}
SHORT = {"max_completion_tokens": 8, "temperature": 0}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The server's address."""
    installed = subprocess.run([PYTHON, "-c", "import llama_cpp.server.app, gguf"], capture_output=True, check=False)
    if installed.returncode:
        pytest.skip("llama-cpp-python[server] and gguf are not installed; LLAMA_PYTHON may name an interpreter")
    folder, port = tmp_path_factory.mktemp("llama"), free_port()
    subprocess.run([PYTHON, MODEL_MAKER, folder / "tiny.gguf"], check=True)
    command = [PYTHON, "-m", "llama_cpp.server", "--model", folder / "tiny.gguf", "--port", str(port)]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([*command, "--n_ctx", "32768", "--n_threads", "1"], stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}/v1"

    def answers() -> bool:
        assert server.poll() is None, (folder / "log").read_text()
        try:
            with urllib.request.urlopen(f"{address}/models", timeout=10) as response:
                return bool(response.status == 200)
        except OSError:
            return False

    try:
        eventually(answers, within=START_SECONDS)
        yield address
    finally:
        server.kill()
        server.wait()


@pytest_asyncio.fixture(autouse=True)
async def _upstream(url: str, settings: Settings) -> AsyncIterator[None]:
    settings.DAYBOOK_UPSTREAMS = {"default": {"url": url, "key": "none", "dialect": "llamacpp"}}
    upstreams.install(ResilientModel(OpenAIModel()))
    yield
    await upstreams.disconnect()


async def test_an_answer(alice_api: Api, agent: Agent) -> None:
    answer = await ask(alice_api, USER, **SHORT)
    assert answer.status == 200, answer.json
    assert answer.json["choices"][0]["finish_reason"] == "length"
    assert 0 < answer.json["usage"]["completion_tokens"] < 30, "the token limit is respected"
    again = await ask(alice_api, USER, {"role": "assistant", "content": answer.text or "Hm."}, USER, **SHORT)
    assert again.status == 200, again.json


async def test_a_streamed_answer(alice_api: Api, agent: Agent) -> None:
    chunks = await stream(alice_api, USER, stream_options={"include_usage": True}, **SHORT)
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    assert any(choice["delta"].get("content") for choice in choices)
    assert choices[-1]["finish_reason"] == "length"


@streamed_and_not
async def test_a_client_s_tool_loop(streamed: bool, alice_api: Api, agent: Agent) -> None:
    options = {"tools": [LOOKUP], "tool_choice": FORCED, "temperature": 0}
    if streamed:
        chunks = await stream(alice_api, USER, **options)
        deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
        pieces = [call for delta in deltas for call in delta.get("tool_calls") or ()]
        arguments = "".join(piece["function"].get("arguments") or "" for piece in pieces)
        call = {"id": pieces[0]["id"], "type": "function", "function": {"name": "lookup", "arguments": arguments}}
    else:
        answer = await ask(alice_api, USER, **options)
        assert answer.status == 200, answer.json
        (call,) = answer.json["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == "lookup"
    assert '"found"' in call["function"]["arguments"]
    result = {"role": "tool", "tool_call_id": call["id"], "content": [{"type": "text", "text": "Green tea."}]}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    answer = await ask(alice_api, USER, message, result, tools=[LOOKUP], **SHORT)
    assert answer.status == 200, answer.json


async def test_a_context_that_is_too_long(alice_api: Api, agent: Agent) -> None:
    answer = await ask(alice_api, {"role": "user", "content": "x" * 40_000}, **SHORT)
    assert (answer.status, answer.json["error"]["code"]) == (400, "context_length_exceeded")
