"""Matching under random changes: clients of many simultaneous chats alter what they resend. No request may end up in
the session of another chat, and nearly every one must be matched to its own."""

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
MAX_MISSED_SHARE = 0.04


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
    return [
        {**message, "content": message["content"][: max(60, len(message["content"]) // 2)] + "…"}
        for message in messages
    ]


def _altered(rng: random.Random, messages: Messages) -> Messages:
    def change(text: str) -> str:
        words = text.split()
        if len(words) > 12:
            words[rng.randrange(len(words))] = "[edited]"
        return "**" + " ".join(words) + "**"

    return [{**message, "content": change(message["content"])} for message in messages]


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
        {**message, "content": f"<system-reminder>{_words(rng, 5)}</system-reminder>\n{message['content']}"}
        if message["role"] == "user"
        else message
        for message in messages
    ]


CHANGES: list[Callable[[random.Random, Messages], Messages]] = [
    _window, _trimmed, _altered, _summary, _joined, _decorated, lambda rng, messages: messages,
]  # fmt: skip


@dataclass(slots=True)
class Chat:
    """A chat and the way its client changes what it resends."""

    changes: Sequence[Callable[[random.Random, Messages], Messages]]
    adds_reminder: bool
    pairs: list[Pair] = field(default_factory=list)
    session: UUID | None = None

    def request(self, rng: random.Random, said: str) -> Messages:
        """Return the messages of the next request."""
        messages = _plain(self.pairs)
        for change in self.changes:
            messages = change(rng, messages)
        return [*messages, {"role": "user", "content": said + (REMINDER if self.adds_reminder else "")}]


def _next_pair(rng: random.Random, chat: Chat) -> Pair:
    if not chat.pairs and rng.random() < 0.5:
        return rng.choice(_OPENERS), _words(rng, rng.choice((12, 40, 120)))
    # Not first and not twice in a row: a short exchange occurs in many chats and is matched by the one before it.
    if chat.pairs and chat.pairs[-1] not in _SMALL and rng.random() < 0.2:
        return rng.choice(_SMALL)
    return _words(rng, rng.choice((6, 15, 60))), _words(rng, rng.choice((15, 50, 200)))


def _turn(owner: Owner, messages: Messages, answer: str) -> Run:
    request = V1Request(caller=caller_make(owner), agent="assistant", messages=tuple(messages), client_system="")
    try:
        context = open_v1(request)
    except ComparisonNeeded:
        context = open_v1(request, continuation=find_continuation(request))
    output = RunOutput(
        text=answer, messages=[{"role": "assistant", "content": answer}], trace=dict(context.earlier.trace)
    )
    close(context, output, state=Run.State.COMPLETED)
    return Run.objects.get(pk=context.run_id)


@pytest.mark.parametrize("seed", range(4))
def test_simultaneous_chats_are_matched_to_their_own_sessions(alice: Owner, agent: Agent, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - reproducible chats
    chats = [
        Chat(changes=rng.sample(CHANGES, k=rng.choice((1, 2))), adds_reminder=rng.random() < 0.3) for _ in range(10)
    ]
    chat_of_session: dict[UUID, Chat] = {}
    missed: list[str] = []
    requests = 0
    for _ in range(60):
        chat = rng.choice(chats)
        said, answer = _next_pair(rng, chat)
        run = _turn(alice, chat.request(rng, said), answer)
        assert chat_of_session.setdefault(run.session_id, chat) is chat, (chat.changes, chat.pairs, said)
        if chat.session not in {None, run.session_id}:
            missed.append(f"{chat.changes} {run.trace} {chat.pairs[-3:]}")
        requests += bool(chat.pairs)
        chat.session = run.session_id
        chat.pairs.append((said, answer))
    assert len(missed) <= MAX_MISSED_SHARE * requests, "\n".join(missed)


def test_matching_takes_a_limited_number_of_queries(alice: Owner, agent: Agent) -> None:
    rng = random.Random(0)  # noqa: S311
    pairs: list[Pair] = []
    for number in range(2 * MAX_TURNS):
        said, answer = f"{number} {_words(rng, 10)}", _words(rng, 30)
        _turn(alice, [*_plain(pairs), {"role": "user", "content": said}], answer)
        pairs.append((said, answer))
    drifted = _decorated(rng, _plain([pairs[-1]]))
    messages = (*drifted, {"role": "user", "content": "And now?"})
    request = V1Request(caller=caller_make(alice), agent="assistant", messages=messages, client_system="")
    with CaptureQueriesContext(connection) as queries:
        finding = find_continuation(request)
    assert finding.session_id is not None
    assert len(queries) <= 8
