"""Real clients with a real Daybook, each in a home of its own: `make test-clients`. The model is an obedient one."""

import json
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.clients.obedient_model import ASK, LOOP, REMEMBER, REMEMBERED, SHELL, THANKS, TOOL
from tests.clients.programs import CLIENTS, SHELL_CLIENTS, TOOL_ANSWERS, Client, Place, Said, install
from tests.e2e.running import RunningDaybook

Outcome = tuple[Any, Any]
"""What was found, and what should have been."""
CASES = [pytest.param(client, column, id=f"{client.name}: {column}") for client in CLIENTS for column in client.columns]


class Talking:
    """A client and the server's side of what it did: memory is empty at the beginning, and only new sessions count."""

    def __init__(self, daybook: RunningDaybook, client: Client, folder: Path) -> None:
        self.daybook, self.client, self.folder = daybook, client, folder
        self._call("DELETE", "/api/account/memories")
        self.mark = f"({folder.parent.name})"  # else it could be another client's conversation, word by word
        self.before = {row["id"] for row in self._sessions()}

    def hold(self, *said: Said) -> list[str]:
        """Hold a conversation of its own."""
        self.folder.mkdir(exist_ok=True)
        place = Place(address=self.daybook.address.rstrip("/"), key=self.daybook.api_key, folder=self.folder)
        return self.client.hold(
            place, self.client.folder, [replace(turn, text=f"{turn.text} {self.mark}") for turn in said]
        )

    def turns(self) -> list[int]:
        """How many turns each new session has, oldest session first."""
        return [row["turns"] for row in reversed(self._sessions()) if row["id"] not in self.before]

    def _sessions(self) -> list[dict[str, Any]]:
        return list(self._call("GET", "/api/sessions?limit=100")["data"])

    def _call(self, method: str, path: str) -> Any:
        headers = {"Authorization": f"Bearer {self.daybook.api_key}"}
        request = urllib.request.Request(self.daybook.address.rstrip("/") + path, method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)


def _remembered(talking: Talking, *, stream: bool = False) -> Outcome:
    """Told in one session, used in the next; two turns of one conversation are two turns of one session."""
    first = talking.hold(Said(text=REMEMBER, stream=stream), Said(text=THANKS, stream=stream))
    second = talking.hold(Said(text=ASK, stream=stream))
    if talking.client.api == "MCP":
        return "Biscuit" in second[0], True
    return (first, second, talking.turns()), (["Noted.", "You are welcome."], [REMEMBERED], [2, 1])


def _streamed(talking: Talking) -> Outcome:
    return _remembered(talking, stream=True)


def _tools(talking: Talking) -> Outcome:
    """The client's tool runs with the model's arguments, and its result comes back, in one turn."""
    text = SHELL if talking.client.name in SHELL_CLIENTS else TOOL
    (answer,) = talking.hold(Said(text=text, tools=True))
    wanted = TOOL_ANSWERS[text]
    return (wanted if wanted in answer else answer, talking.turns()), (wanted, [1])


def _loop(talking: Talking) -> Outcome:
    """Two steps with tools are one turn; so is the next, with all of that in its history."""
    answers = talking.hold(Said(text=LOOP, tools=True, stream=True), Said(text=THANKS, tools=True, stream=True))
    return (answers, talking.turns()), ([TOOL_ANSWERS[LOOP], "You are welcome."], [2])


def _regenerated(talking: Talking) -> Outcome:
    """The same turn again is no other turn."""
    answers = talking.hold(Said(text=REMEMBER), Said(text=THANKS), Said(text=THANKS, after=1))
    return (answers[1:], talking.turns()), (["You are welcome."] * 2, [2])


def _forked(talking: Talking) -> Outcome:
    """Another turn in the place of an earlier one leaves what was said there as it is."""
    answers = talking.hold(Said(text=REMEMBER), Said(text=THANKS), Said(text=ASK, after=1), Said(text=THANKS))
    found = answers, talking.turns()[0], len(talking.turns())
    return found, (["Noted.", "You are welcome.", REMEMBERED, "You are welcome."], 2, 2)


CHECKS: dict[str, Callable[[Talking], Outcome]] = {
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
    found, wanted = CHECKS[column](Talking(daybook, client, tmp_path / "client"))
    assert found == wanted
