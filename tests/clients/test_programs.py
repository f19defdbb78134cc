"""Real clients, each with its own home, with a real Daybook and the obedient model: `make test-clients`."""

import json
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.clients.obedient_model import ASK, LOOP, REMEMBER, REMEMBERED, SHELL, THANKS, TOOL
from tests.clients.programs import CLIENTS, SHELL_CLIENTS, TOOL_ANSWERS, Client, Turn, Workspace, install
from tests.e2e.running import RunningDaybook

Outcome = tuple[Any, Any]
"""The actual and the expected result."""
CASES = [pytest.param(client, column, id=f"{client.name}: {column}") for client in CLIENTS for column in client.columns]


class ClientRun:
    """A client and its sessions on the server. Memory is empty at the beginning, and only new sessions count."""

    def __init__(self, daybook: RunningDaybook, client: Client, folder: Path) -> None:
        self.daybook, self.client, self.folder = daybook, client, folder
        self._call("DELETE", "/api/account/memories")
        self.mark = f"({folder.parent.name})"  # otherwise it would equal another client's conversation
        self.before = {row["id"] for row in self._sessions()}

    def talk(self, *turns: Turn) -> list[str]:
        """Have a conversation through the client; return the answers."""
        self.folder.mkdir(exist_ok=True)
        workspace = Workspace(address=self.daybook.address.rstrip("/"), key=self.daybook.api_key, folder=self.folder)
        return self.client.talk(
            workspace, self.client.folder, [replace(turn, text=f"{turn.text} {self.mark}") for turn in turns]
        )

    def turns(self) -> list[int]:
        """Return how many turns each new session has, oldest session first."""
        return [row["turns"] for row in reversed(self._sessions()) if row["id"] not in self.before]

    def _sessions(self) -> list[dict[str, Any]]:
        return list(self._call("GET", "/api/sessions?limit=100")["data"])

    def _call(self, method: str, path: str) -> Any:
        headers = {"Authorization": f"Bearer {self.daybook.api_key}"}
        request = urllib.request.Request(self.daybook.address.rstrip("/") + path, method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)


def _remembered(client_run: ClientRun, *, stream: bool = False) -> Outcome:
    """A fact from one session is used in the next; two turns of a conversation are two turns of one session."""
    first = client_run.talk(Turn(text=REMEMBER, stream=stream), Turn(text=THANKS, stream=stream))
    second = client_run.talk(Turn(text=ASK, stream=stream))
    if client_run.client.api == "MCP":
        return "Biscuit" in second[0], True
    return (first, second, client_run.turns()), (["Noted.", "You are welcome."], [REMEMBERED], [2, 1])


def _streamed(client_run: ClientRun) -> Outcome:
    return _remembered(client_run, stream=True)


def _tools(client_run: ClientRun) -> Outcome:
    """The client's tool runs with the model's arguments and returns its result, all in one turn."""
    text = SHELL if client_run.client.name in SHELL_CLIENTS else TOOL
    (answer,) = client_run.talk(Turn(text=text, tools=True))
    expected = TOOL_ANSWERS[text]
    return (expected if expected in answer else answer, client_run.turns()), (expected, [1])


def _loop(client_run: ClientRun) -> Outcome:
    """Two tool calls in succession are one turn; so is the next message, with those in its history."""
    answers = client_run.talk(Turn(text=LOOP, tools=True, stream=True), Turn(text=THANKS, tools=True, stream=True))
    return (answers, client_run.turns()), ([TOOL_ANSWERS[LOOP], "You are welcome."], [2])


def _regenerated(client_run: ClientRun) -> Outcome:
    """Repeating a turn creates no new turn."""
    answers = client_run.talk(Turn(text=REMEMBER), Turn(text=THANKS), Turn(text=THANKS, after=1))
    return (answers[1:], client_run.turns()), (["You are welcome."] * 2, [2])


def _forked(client_run: ClientRun) -> Outcome:
    """Replacing an earlier turn leaves the original conversation as it was."""
    answers = client_run.talk(Turn(text=REMEMBER), Turn(text=THANKS), Turn(text=ASK, after=1), Turn(text=THANKS))
    found = answers, client_run.turns()[0], len(client_run.turns())
    return found, (["Noted.", "You are welcome.", REMEMBERED, "You are welcome."], 2, 2)


CHECKS: dict[str, Callable[[ClientRun], Outcome]] = {
    "remembered": _remembered,
    "streamed": _streamed,
    "tools": _tools,
    "loop": _loop,
    "regenerated": _regenerated,
    "forked": _forked,
}


@pytest.mark.parametrize(("client", "column"), CASES)
def test_client(daybook: RunningDaybook, tmp_path: Path, client: Client, column: str) -> None:
    if reason := install(client):
        pytest.skip(reason)
    found, expected = CHECKS[column](ClientRun(daybook, client, tmp_path / "client"))
    assert found == expected
