"""Recorded conversations of clients that resend them (conversations/*.json): the requests as each client sends them,
what the model answers, and which session and turn each request belongs to.

A case's `expect.session` is a label: one that stands there first is a new session, and each label is a session of its
own; null is a request that is not a turn. `apart`: the case shows what must not be merged. `alone`: other cases
say the same. `{{call 0 1}}` is the id of the second call that the answer to the first request holds."""

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "conversations"
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
_CALL = re.compile(r"\{\{call (\d+) (\d+)\}\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One conversation, or several at once, of a client."""

    client: str
    name: str
    api: str
    apart: bool
    alone: bool
    requests: Sequence[Mapping[str, Any]]

    def __str__(self) -> str:
        return f"{self.client}: {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Where a request was put: ids of the session, its parent and the turn's number."""

    session: str
    parent: str
    turn: int
    rule: str
    calls: Sequence[str] = ()


@dataclass(slots=True)
class Score:
    """What became of the requests of the cases that were played."""

    requests: int = 0
    right: int = 0
    merged: list[str] = field(default_factory=list)  # in a session of another conversation
    wrong: list[str] = field(default_factory=list)  # not found again, or another turn

    def __str__(self) -> str:
        return f"{self.right} of {self.requests} requests right, {len(self.merged)} merged wrongly"


Send = Callable[[Case, Mapping[str, Any], dict[str, Any]], Awaitable[Placed]]
"""Send a request with its body, have the scripted answer given, and say where it was put."""


def cases() -> Iterator[Case]:
    """Yield every recorded case."""
    for file in sorted(FOLDER.glob("*.json")):
        recorded = json.loads(file.read_text())
        for case in recorded["cases"]:
            yield Case(
                client=recorded["client"],
                name=case["name"],
                api=case["api"],
                apart=case.get("apart", False),
                alone=case.get("alone", False),
                requests=case["requests"],
            )


async def play(case: Case, send: Send, score: Score) -> None:
    """Play a case and add what became of its requests."""
    labels: dict[str, str] = {}
    calls: list[Sequence[str]] = []
    for number, request in enumerate(case.requests):
        placed = await send(case, request, _filled(request["body"], calls))
        calls.append(placed.calls)
        where = f"{case}: request {number + 1} (by {placed.rule})"
        score.requests += 1
        _compare(request["expect"], placed, labels, where, score)


def _compare(expected: Mapping[str, Any], placed: Placed, labels: dict[str, str], where: str, score: Score) -> None:
    label = expected["session"]
    if label is None or not placed.session:
        if label is None and not placed.session:
            score.right += 1
        else:
            score.wrong.append(f"{where}: is {'a turn' if placed.session else 'not a turn'}")
        return
    known = {session: name for name, session in labels.items()}
    if known.get(placed.session, label) != label:
        score.merged.append(f"{where}: is in {known[placed.session]}, not in {label}")
    elif labels.setdefault(label, placed.session) != placed.session:
        score.wrong.append(f"{where}: is not in {label}")
    elif expected.get("turn", placed.turn) != placed.turn:
        score.wrong.append(f"{where}: is turn {placed.turn}, not {expected['turn']}")
    elif "parent" in expected and labels[expected["parent"]] != placed.parent:
        score.wrong.append(f"{where}: does not remember {expected['parent']}")
    else:
        score.right += 1


def _filled(body: Any, calls: Sequence[Sequence[str]]) -> dict[str, Any]:
    filled: dict[str, Any] = json.loads(_CALL.sub(lambda match: calls[int(match[1])][int(match[2])], json.dumps(body)))
    if tools := filled.get("tools"):
        filled["tools"] = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in tools]
    return filled
