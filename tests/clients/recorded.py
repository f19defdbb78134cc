"""Recorded conversations of clients that resend them (conversations/*.json): each client's requests, the model's
answers, and the session and turn that each request belongs to.

A case's `expect.session` is a label: a new label is a new session, and each label is a different session; null is a
request that is not a turn. `apart` marks cases with conversations that must not be merged, `alone` those that contain
the same messages as other cases. `{{call 0 1}}` is the id of the second call in the answer to the first request."""

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
    """One or several conversations of a client."""

    client: str
    name: str
    api: str
    apart: bool
    alone: bool
    requests: Sequence[Mapping[str, Any]]

    def __str__(self) -> str:
        return f"{self.client}: {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where a request was placed: the session's id, its parent's id and the turn's number."""

    session: str
    parent: str
    turn: int
    rule: str
    calls: Sequence[str] = ()


@dataclass(slots=True)
class Score:
    """The results of the requests in the played cases."""

    requests: int = 0
    right: int = 0
    merged: list[str] = field(default_factory=list)  # placed in another conversation's session
    wrong: list[str] = field(default_factory=list)  # placed in a new session or as another turn

    def __str__(self) -> str:
        return f"{self.right} of {self.requests} requests right, {len(self.merged)} merged wrongly"


Send = Callable[[Case, Mapping[str, Any], dict[str, Any]], Awaitable[Placement]]
"""Send a request with this body, script its answer, and return where it was placed."""


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
    """Play a case and add the results of its requests."""
    labels: dict[str, str] = {}
    calls: list[Sequence[str]] = []
    for number, request in enumerate(case.requests):
        placement = await send(case, request, _fill(request["body"], calls))
        calls.append(placement.calls)
        where = f"{case}: request {number + 1} (by {placement.rule})"
        score.requests += 1
        _compare(request["expect"], placement, labels, where, score)


def _compare(
    expected: Mapping[str, Any], placement: Placement, labels: dict[str, str], where: str, score: Score
) -> None:
    label = expected["session"]
    if label is None or not placement.session:
        if label is None and not placement.session:
            score.right += 1
        else:
            score.wrong.append(f"{where}: is {'a turn' if placement.session else 'not a turn'}")
        return
    known = {session: name for name, session in labels.items()}
    if known.get(placement.session, label) != label:
        score.merged.append(f"{where}: is in {known[placement.session]}, not in {label}")
    elif labels.setdefault(label, placement.session) != placement.session:
        score.wrong.append(f"{where}: is not in {label}")
    elif expected.get("turn", placement.turn) != placement.turn:
        score.wrong.append(f"{where}: is turn {placement.turn}, not {expected['turn']}")
    elif "parent" in expected and labels[expected["parent"]] != placement.parent:
        score.wrong.append(f"{where}: does not remember {expected['parent']}")
    else:
        score.right += 1


def _fill(body: Any, calls: Sequence[Sequence[str]]) -> dict[str, Any]:
    body_with_ids: dict[str, Any] = json.loads(
        _CALL.sub(lambda match: calls[int(match[1])][int(match[2])], json.dumps(body))
    )
    if tools := body_with_ids.get("tools"):
        body_with_ids["tools"] = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in tools]
    return body_with_ids
