"""Recorded conversations of a few clients against a real Daybook and a scripted model server; identical concurrent
requests."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.clients.recorded import PATHS, Case, Placement, Score, cases, play
from tests.e2e.conftest import StartDaybook
from tests.e2e.running import RunningDaybook
from tests.upstream_server import UpstreamServer

pytestmark = [pytest.mark.e2e, pytest.mark.any_database]

REPRESENTATIVE = {
    "open webui: reasoning is dropped on replay",
    "aider: the repository map and the files change, and the reminder leaves the last message",
    "cline: the results of tools are followed by the state of the editor: steps of one turn",
    "codex: without its headers: found by content",
    "claude code: without ids: reminders come and go",
    "langchain: the same two questions in two chains",
    "silly tavern: two chats with the same character",
}


class Client:
    """Requests to a running Daybook."""

    def __init__(self, daybook: RunningDaybook) -> None:
        self.daybook = daybook

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, Any]:
        """Send a request; return status, JSON and headers."""
        all_headers = {"Authorization": f"Bearer {self.daybook.api_key}", "Content-Type": "application/json", **headers}
        data = None if body is None else json.dumps(body).encode()
        address = f"{self.daybook.address}{path.lstrip('/')}"
        request = urllib.request.Request(address, method=method, data=data, headers=all_headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return response.status, json.loads(response.read()), response.headers
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read()), error.headers


@pytest.fixture
def client(start_daybook: StartDaybook, upstream: UpstreamServer, tmp_path: Path) -> Client:
    """A client of an agent without reviews, which would consume the turns' scripted answers."""
    agents = tmp_path / "agents.yaml"
    agents.write_text("agents: {assistant: {model: m}}")
    env = {"OPENAI_BASE_URL": upstream.url, "OPENAI_API_KEY": "x", "DAYBOOK_AGENTS": str(agents)}
    return Client(start_daybook(env))


def _step(answer: Any) -> Any:
    if isinstance(answer, str):
        return answer
    return {"text": answer["text"], "calls": [{"name": name, "arguments": given} for name, given in answer["calls"]]}


async def test_recorded_conversations_over_http(client: Client, upstream: UpstreamServer) -> None:
    async def send(case: Case, request: Mapping[str, Any], body: dict[str, Any]) -> Placement:
        upstream.script(_step(request["answer"]))
        path, request_body = PATHS[case.api], {"model": "assistant", **body}
        status, answer, headers = await asyncio.to_thread(
            client.call, "POST", path, request_body, **request.get("headers", {})
        )
        assert status == 200, answer
        session = headers["x-daybook-session"]
        _, turn, _ = await asyncio.to_thread(
            client.call, "GET", f"/api/sessions/{session}/turns/{headers['x-daybook-run']}"
        )
        made = [call for choice in answer.get("choices", ()) for call in choice["message"].get("tool_calls") or ()]
        return Placement(session=session, parent="", turn=turn["turn"], rule="", calls=[call["id"] for call in made])

    score = Score()
    selected = [case for case in cases() if str(case) in REPRESENTATIVE]
    assert len(selected) == len(REPRESENTATIVE)
    for case in selected:
        await play(case, send, score)
    assert (score.merged, score.wrong) == ([], [])


async def test_two_identical_concurrent_requests_are_one_run(client: Client, upstream: UpstreamServer) -> None:
    upstream.script("Hello.", {"text": "Fine.", "think_seconds": 1.5})
    first = [{"role": "user", "content": "hi"}]
    await asyncio.to_thread(client.call, "POST", PATHS["chat"], {"model": "assistant", "messages": first})
    messages = [*first, {"role": "assistant", "content": "Hello."}, {"role": "user", "content": "How are you?"}]
    body = {"model": "assistant", "messages": messages}
    first_request = asyncio.create_task(asyncio.to_thread(client.call, "POST", PATHS["chat"], body))
    await asyncio.sleep(0.5)
    second_request = asyncio.create_task(asyncio.to_thread(client.call, "POST", PATHS["chat"], body))
    answers = [await first_request, await second_request]
    assert [answer["choices"][0]["message"]["content"] for _, answer, _ in answers] == ["Fine.", "Fine."]
    assert len({headers["x-daybook-run"] for _, _, headers in answers}) == 1
    assert len(upstream.requests()) == 2
