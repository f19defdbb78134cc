"""Many chats of one person at once, whose clients change what they resend in random ways: none ends up in the session
of another, and nearly every request is found again."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from gateway.models import Agent, Run
from gateway.runs.candidates import MAX_TURNS, find_continuation
from gateway.runs.closing import close
from gateway.runs.context import RunOutput
from gateway.runs.requested import ComparisonNeeded, V1Request
from gateway.runs.v1 import open_v1
from memories.models import Owner
from tests.factories import caller_make

pytestmark = pytest.mark.any_database

Pair = tuple[str, str]
Messages = list[dict[str, Any]]
_ENDS = ("n", "rt", "st", "ll", "m")
_WORDS = [f"{start}{middle}{end}" for start in "bdfklmnprst" for middle in "aeiou" for end in _ENDS]
_SMALL = [("continue", "Go on."), ("thanks", "You're welcome!"), ("yes", "Good."), ("ok", "Anything else?")]
_OPENERS = ["hi", "Fix the failing tests", "Help me with my homework, please"]
REMINDER = "\n\nAlways answer in a SEARCH/REPLACE block, and keep it short, whatever the person asks you for."
MOST_MISSED = 0.04


def _words(rng: random.Random, number: int) -> str:
    return " ".join(rng.choices(_WORDS, weights=[1 / (rank + 5) for rank in range(len(_WORDS))], k=number))


def _plain(pairs: Sequence[Pair]) -> Messages:
    return [
        {"role": role, "content": text}
        for pair in pairs
        for role, text in zip(("user", "assistant"), pair, strict=True)
    ]


def _window(rng: random.Random, messages: Messages) -> Messages:
    return messages[-rng.choice((3, 4, 6)) :]


def _trimmed(rng: random.Random, messages: Messages) -> Messages:
    return [{**one, "content": one["content"][: max(60, len(one["content"]) // 2)] + "…"} for one in messages]


def _altered(rng: random.Random, messages: Messages) -> Messages:
    def change(text: str) -> str:
        words = text.split()
        if len(words) > 12:
            words[rng.randrange(len(words))] = "[edited]"
        return "**" + " ".join(words) + "**"

    return [{**one, "content": change(one["content"])} for one in messages]


def _summary(rng: random.Random, messages: Messages) -> Messages:
    if len(messages) < 4:
        return messages
    return [
        {"role": "user", "content": "I spoke to you previously about a number of things."},
        {"role": "assistant", "content": "Ok."},
        *messages[-2:],
    ]


def _joined(rng: random.Random, messages: Messages) -> Messages:
    return [{"role": "system", "content": _words(rng, 20)}, *messages, {"role": "system", "content": "It is late."}]


def _decorated(rng: random.Random, messages: Messages) -> Messages:
    return [
        {**one, "content": f"<system-reminder>{_words(rng, 5)}</system-reminder>\n{one['content']}"}
        if one["role"] == "user"
        else one
        for one in messages
    ]


CHANGES: list[Callable[[random.Random, Messages], Messages]] = [
    _window, _trimmed, _altered, _summary, _joined, _decorated, lambda rng, messages: messages,
]  # fmt: skip


@dataclass(slots=True)
class Chat:
    """A chat and the client that holds it."""

    changes: Sequence[Callable[[random.Random, Messages], Messages]]
    reminds: bool
    pairs: list[Pair] = field(default_factory=list)
    session: UUID | None = None

    def request(self, rng: random.Random, said: str) -> Messages:
        """The messages of the next request."""
        messages = _plain(self.pairs)
        for change in self.changes:
            messages = change(rng, messages)
        return [*messages, {"role": "user", "content": said + (REMINDER if self.reminds else "")}]


def _said(rng: random.Random, chat: Chat) -> Pair:
    if not chat.pairs and rng.random() < 0.5:
        return rng.choice(_OPENERS), _words(rng, rng.choice((12, 40, 120)))
    # Not after nothing else: what is said with few words alone is in many chats, and known by what stands before it.
    if chat.pairs and chat.pairs[-1] not in _SMALL and rng.random() < 0.2:
        return rng.choice(_SMALL)
    return _words(rng, rng.choice((6, 15, 60))), _words(rng, rng.choice((15, 50, 200)))


def _turn(owner: Owner, messages: Messages, answer: str) -> Run:
    caller = caller_make(owner)
    asked = V1Request(agent="assistant", messages=tuple(messages), client_system="")
    try:
        context = open_v1(caller, asked)
    except ComparisonNeeded:
        context = open_v1(caller, asked, continuation=find_continuation(caller, asked))
    output = RunOutput(
        text=answer, messages=[{"role": "assistant", "content": answer}], trace=dict(context.earlier.trace)
    )
    close(context, output, state=Run.State.COMPLETED)
    return Run.objects.get(pk=context.run_id)


@pytest.mark.parametrize("seed", range(4))
def test_chats_at_once(alice: Owner, agent: Agent, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - the same chats in each run
    chats = [Chat(changes=rng.sample(CHANGES, k=rng.choice((1, 2))), reminds=rng.random() < 0.3) for _ in range(10)]
    whose: dict[UUID, Chat] = {}
    missed: list[str] = []
    requests = 0
    for _ in range(60):
        chat = rng.choice(chats)
        said, answer = _said(rng, chat)
        run = _turn(alice, chat.request(rng, said), answer)
        assert whose.setdefault(run.session_id, chat) is chat, (chat.changes, chat.pairs, said)
        if chat.session not in {None, run.session_id}:
            missed.append(f"{chat.changes} {run.trace} {chat.pairs[-3:]}")
        requests += bool(chat.pairs)
        chat.session = run.session_id
        chat.pairs.append((said, answer))
    assert len(missed) <= MOST_MISSED * requests, "\n".join(missed)


def test_a_look_takes_a_bounded_number_of_queries(alice: Owner, agent: Agent) -> None:
    rng = random.Random(0)  # noqa: S311
    pairs: list[Pair] = []
    for number in range(2 * MAX_TURNS):
        said, answer = f"{number} {_words(rng, 10)}", _words(rng, 30)
        _turn(alice, [*_plain(pairs), {"role": "user", "content": said}], answer)
        pairs.append((said, answer))
    drifted = _decorated(rng, _plain([pairs[-1]]))
    asked = V1Request(agent="assistant", messages=(*drifted, {"role": "user", "content": "And now?"}), client_system="")
    with CaptureQueriesContext(connection) as queries:
        finding = find_continuation(caller_make(alice), asked)
    assert finding.session_id is not None
    assert len(queries) <= 8
