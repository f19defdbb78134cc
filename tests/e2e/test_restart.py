"""A restart loses nothing: open turns of a real Daybook that is stopped or killed, and started again."""

import http.client
import json
import signal
import sqlite3
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.e2e.conftest import StartDaybook
from tests.e2e.running import RunningDaybook, wait_until_none_left
from tests.upstream_server import UpstreamServer
from tests.waiting import eventually

pytestmark = pytest.mark.e2e

KEY = "dbk_" + "e2e-restart-" * 3
STORY = "Once upon a time"
HANGS = {"text": [STORY], "hang": "middle"}
AGENTS = """
agents:
  assistant:
    instructions: You are terse.
"""


@dataclass
class Answer:
    """An answer that is read in a thread. `text` is what has arrived so far; `status` is 0 until there is one."""

    status: int = 0
    text: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    finished: threading.Event = field(default_factory=threading.Event)

    def wait(self) -> str:
        """Wait for the end and return the text."""
        assert self.finished.wait(20), f"no end after {self.text!r}"
        return self.text


def _headers(response: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


class Client:
    """Requests with an API key."""

    def __init__(self, daybook: RunningDaybook) -> None:
        self.daybook = daybook

    def begin(self, path: str, body: Any) -> Answer:
        """Send a POST request and read the answer in the background."""
        answer = Answer()
        threading.Thread(target=self._read, args=(path, body, answer), daemon=True).start()
        return answer

    def _read(self, path: str, body: Any, answer: Answer) -> None:
        try:
            with urllib.request.urlopen(self._request("POST", path, body), timeout=30) as response:
                answer.status, answer.headers = response.status, _headers(response)
                while piece := response.read1():
                    answer.text += piece.decode()
        except urllib.error.HTTPError as error:
            with error:
                answer.text, answer.headers, answer.status = error.read().decode(), _headers(error), error.code
        except (OSError, http.client.HTTPException) as error:
            answer.text += f"cut: {error}"
        finally:
            answer.finished.set()

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any, dict[str, str]]:
        """Send a request; return status, JSON and headers."""
        try:
            with urllib.request.urlopen(self._request(method, path, body), timeout=30) as response:
                return response.status, json.loads(response.read()), _headers(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read()), _headers(error)

    def messages(self, session: str) -> list[str]:
        return [row["content"] for row in self.call("GET", f"/api/sessions/{session}/messages")[1]["data"]]

    def _request(self, method: str, path: str, body: Any) -> urllib.request.Request:
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        return urllib.request.Request(
            f"{self.daybook.address}{path.lstrip('/')}", method=method, data=data, headers=headers
        )


@pytest.fixture
def start(home: Path, start_daybook: StartDaybook, upstream: UpstreamServer, tmp_path: Path) -> Callable[..., Client]:
    """Start a Daybook on this test's home: `start(server="uvicorn")`."""
    agents = tmp_path / "agents.yaml"
    agents.write_text(AGENTS)
    env = {"OPENAI_BASE_URL": upstream.url, "OPENAI_API_KEY": "x", "DAYBOOK_API_KEY": KEY, "DAYBOOK_MODEL": "m"}
    env |= {"DAYBOOK_AGENTS": str(agents), "DAYBOOK_ADMIN_PASSWORD": "admin knows it"}

    def begin(server: str = "uvicorn") -> Client:
        # Forks of the warm process end without tearing down their modules, which reports what was left open.
        return Client(start_daybook(env | {"DAYBOOK_SERVER": server}, own_interpreter=server == "daphne"))

    return begin


def runs(home: Path, storage: dict[str, str]) -> list[tuple[str, str, str]]:
    """Return (state, text, reason for stopping) of all runs, read directly from the database."""
    query = "SELECT state, text, trace FROM gateway_run ORDER BY id"
    if url := storage.get("DATABASE_URL"):
        with psycopg.connect(url) as connection:
            rows = connection.execute(query).fetchall()
    else:
        with closing(sqlite3.connect(home / "daybook.sqlite3")) as database:
            rows = database.execute(query).fetchall()
    traces = [trace if isinstance(trace, dict) else json.loads(trace) for _, _, trace in rows]
    return [(state, text, trace.get("stopped_by", "")) for (state, text, _), trace in zip(rows, traces, strict=True)]


def session_of(client: Client) -> str:
    return str(client.call("POST", "/api/sessions", {"agent": "assistant"})[1]["id"])


def v1(**more: Any) -> dict[str, Any]:
    return {"model": "assistant", "messages": [{"role": "user", "content": "Tell me a story"}], **more}


@pytest.mark.parametrize("server", ["uvicorn", pytest.param("daphne", marks=pytest.mark.any_database)])
def test_stopping_keeps_the_text_of_open_turns_and_informs_their_clients(
    server: str, start: Callable[..., Client], home: Path, storage: dict[str, str], upstream: UpstreamServer
) -> None:
    client = start(server)
    session = session_of(client)
    upstream.script(HANGS)
    native = client.begin(f"/api/sessions/{session}/turns", {"content": "Tell me a story", "stream": True})
    eventually(lambda: STORY in native.text, within=20)
    upstream.script(HANGS)
    streamed = client.begin("/v1/chat/completions", v1(stream=True))
    eventually(lambda: STORY in streamed.text, within=20)
    upstream.script({"hang": "before"})
    whole = client.begin("/v1/chat/completions", v1())
    eventually(lambda: len(upstream.requests()) == 3, within=20)
    assert client.daybook.stop(signal.SIGTERM) == 0
    wait_until_none_left(home)
    assert "Unclosed" not in client.daybook.errors()  # connections to the model server
    # No sweep and no start has happened since, so the stopped process itself did this.
    assert runs(home, storage) == [
        ("stopped", STORY, "restart"),
        ("stopped", STORY, "restart"),
        ("stopped", "", "restart"),
    ]
    last = native.wait().strip().split("\n\n")[-1]
    assert "event: done" in last
    assert '"state": "stopped"' in last
    end = json.loads(streamed.wait().strip().split("\n\n")[-1].removeprefix("data: "))
    assert (end["error"]["code"], end["error"]["type"]) == ("overloaded", "api_error")
    assert "restarting" in end["error"]["message"]
    assert json.loads(whole.wait())["error"]["code"] == "overloaded"
    assert (whole.status, int(whole.headers["retry-after"]) > 0) == (503, True)

    client = start(server)
    assert client.messages(session) == ["Tell me a story", STORY]
    upstream.script({"text": "The end."})
    status, turn, _ = client.call("POST", f"/api/sessions/{session}/turns", {"content": "Go on"})
    assert (status, turn["content"]) == (200, "The end.")


def test_after_a_kill_the_session_continues_with_the_stored_text(
    start: Callable[..., Client], home: Path, storage: dict[str, str], upstream: UpstreamServer
) -> None:
    client = start()
    session = session_of(client)
    upstream.script(HANGS)
    native = client.begin(f"/api/sessions/{session}/turns", {"content": "Tell me a story", "stream": True})
    eventually(lambda: STORY in native.text, within=20)
    upstream.script(HANGS)
    streamed = client.begin("/v1/chat/completions", v1(stream=True))
    eventually(lambda: STORY in streamed.text, within=20)
    eventually(lambda: runs(home, storage) == [("running", STORY, ""), ("running", STORY, "")], within=20)
    client.daybook.kill()
    wait_until_none_left(home)
    client = start()
    (turn,) = {row["turn_id"] for row in client.call("GET", f"/api/sessions/{session}/messages")[1]["data"]}
    if storage:  # with several processes, only an expired lease or a stop request ends the turn
        status, stopped, _ = client.call("POST", f"/api/sessions/{session}/turns/{turn}/stop", {})
        assert (status, stopped["state"]) == (200, "stopped")
    status, shown, _ = client.call("GET", f"/api/sessions/{session}/turns/{turn}")
    assert (shown["state"], shown["content"], shown["error"]) == ("stopped", STORY, None)
    assert client.messages(session) == ["Tell me a story", STORY]
    # A client that reconnects at its last position gets the end.
    with urllib.request.urlopen(
        client._request("GET", f"/api/sessions/{session}/turns/{turn}/events?after={len(STORY)}", None), timeout=20
    ) as events:
        assert "event: done" in events.read().decode()
    upstream.script({"text": "The end."})
    again = {"content": "Tell me a story", "replaces": turn}
    status, answered, _ = client.call("POST", f"/api/sessions/{session}/turns", again)
    assert (status, answered["content"]) == (200, "The end.")
    assert client.messages(session)[-1] == "The end."
    eventually(lambda: {state for state, _, _ in runs(home, storage)} == {"stopped", "completed"}, within=40)
