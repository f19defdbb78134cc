"""What the model is sent while a client runs its tools: the messages of the loop as the client sends them, for it may
clear results, leave steps out or add a note; and in their places our own calls and results, which it never saw. A loop
that the client resends unchanged is sent exactly as the model wrote it, so that a server's prompt cache holds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.runs.call_ids import call_ids
from gateway.runs.fingerprint import last_asked, strip_whitespace, text_of
from gateway.tool_calls import calls_in
from gateway.upstream.kept import kept_of, with_kept

ChatMessage = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """A model step of the run as it is stored: the assistant's message, and the results of its calls so far."""

    said: ChatMessage
    results: tuple[ChatMessage, ...]

    def own(self, client_ids: frozenset[str], text: Any) -> Iterator[ChatMessage]:
        """Yield the part of the step that the client never saw: our calls and their results."""
        calls = [call for call in self.said.get("tool_calls") or () if call["id"] not in client_ids]
        if calls:
            yield with_kept({**self.said, "content": text, "tool_calls": calls}, kept_of(self.said))
            yield from self.own_results(client_ids)

    def own_results(self, client_ids: frozenset[str]) -> Iterator[ChatMessage]:
        """Yield the results of our calls."""
        return (result for result in self.results if result["tool_call_id"] not in client_ids)


def loop_start(messages: Sequence[ChatMessage], client_ids: frozenset[str]) -> int:
    """Return the index at which the loop begins in a client's messages: at the first message that holds a call of this
    run; in a request without one, after the last message of the user."""
    for index, message in enumerate(messages):
        if not client_ids.isdisjoint(call_ids(message)):
            return index
    return last_asked(messages) + 1


def loop_messages(
    stored: Sequence[ChatMessage], sent: Sequence[ChatMessage], client_ids: frozenset[str]
) -> list[ChatMessage]:
    """Return the messages of the loop as the model is to see them. `stored` are those of the run after the user's,
    `sent` the client's from the loop's start on, and `client_ids` the ids of the run's calls that are the client's."""
    if all(client_ids.isdisjoint(call_ids(message)) for message in sent):  # results alone: the rest is left to us
        answered = {message.get("tool_call_id") for message in stored}
        return [*stored, *(message for message in sent if message.get("tool_call_id") not in answered)]
    return list(_merged(_steps(stored), sent, client_ids))


def _merged(steps: Sequence[Step], sent: Sequence[ChatMessage], client_ids: frozenset[str]) -> Iterator[ChatMessage]:
    places = {call["id"]: place for place, step in enumerate(steps) for call in step.said.get("tool_calls") or ()}
    result_ids = {result["tool_call_id"] for step in steps for result in step.own_results(client_ids)}
    reached = 0
    for message in sent:
        if message.get("role") == "tool" and message.get("tool_call_id") in result_ids:
            continue  # a stored transcript holds ours, too; they are put in with their step
        place = max((places[call_id] for call_id in call_ids(message) if call_id in places), default=-1)
        if place < reached:
            yield message
            continue
        yield from _segment(steps[reached : place + 1], message, client_ids)
        reached = place + 1
    for step in steps[reached:]:
        yield from step.own(client_ids, text=None)


def _segment(steps: Sequence[Step], message: ChatMessage, client_ids: frozenset[str]) -> Iterator[ChatMessage]:
    """Yield the steps that the client knows as one message, the last of them with its calls."""
    *hidden, last = steps
    said = "".join(text_of(step.said["content"]) for step in steps)
    unchanged = strip_whitespace(text_of(message.get("content"))) == strip_whitespace(said)
    for step in hidden:
        yield from step.own(client_ids, text=step.said["content"] if unchanged else None)
    named = {call.get("id"): call for call in calls_in(message)}
    made = [named.get(call["id"], call) for call in last.said["tool_calls"]]
    content = last.said["content"] if unchanged else message.get("content")
    calls = [call for call in made if call["id"] in named or call["id"] not in client_ids]
    yield with_kept({**last.said, "content": content, "tool_calls": calls}, kept_of(last.said))
    yield from last.own_results(client_ids)


def _steps(stored: Sequence[ChatMessage]) -> list[Step]:
    starts = [index for index, message in enumerate(stored) if message["role"] == "assistant"]
    ends = [*starts[1:], len(stored)]
    return [Step(stored[start], tuple(stored[start + 1 : end])) for start, end in zip(starts, ends, strict=True)]
