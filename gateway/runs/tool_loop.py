"""Builds the messages of a tool loop in which the client executes its tools: those that the client sends, since it may
clear results, omit steps or add notes, with our own calls and results inserted, which it never saw. A loop that the
client resends unchanged is sent exactly as the model wrote it, so that the server's prompt cache stays valid."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.messages import ChatMessage
from gateway.runs.call_ids import call_ids
from gateway.runs.fingerprint import last_user_index, strip_whitespace, text_of
from gateway.tool_calls import calls_in
from gateway.upstream.kept import kept_of, with_kept


@dataclass(frozen=True, slots=True)
class Step:
    """A stored model step of the run: the assistant message, and the results of its calls so far."""

    message: ChatMessage
    results: tuple[ChatMessage, ...]

    def own_part(self, client_ids: frozenset[str], text: Any) -> Iterator[ChatMessage]:
        """Yield the part of the step that the client never saw: our calls and their results. `text` becomes the content
        of the message."""
        calls = [call for call in self.message.get("tool_calls") or () if call["id"] not in client_ids]
        if calls:
            yield with_kept({**self.message, "content": text, "tool_calls": calls}, kept_of(self.message))
            yield from self.own_results(client_ids)

    def own_results(self, client_ids: frozenset[str]) -> Iterator[ChatMessage]:
        """Yield the results of our calls."""
        return (result for result in self.results if result["tool_call_id"] not in client_ids)


def loop_start(messages: Sequence[ChatMessage], client_ids: frozenset[str]) -> int:
    """Return the index at which the loop begins in a client's messages: at the first message with a call of this run
    or, if there is none, after the last user message."""
    for index, message in enumerate(messages):
        if not client_ids.isdisjoint(call_ids(message)):
            return index
    return last_user_index(messages) + 1


def loop_messages(
    stored: Sequence[ChatMessage], sent: Sequence[ChatMessage], client_ids: frozenset[str]
) -> list[ChatMessage]:
    """Return the messages of the loop for the model. `stored` are the run's messages after the user message, `sent` the
    client's messages from the start of the loop, and `client_ids` the ids of the run's calls of client tools."""
    if all(client_ids.isdisjoint(call_ids(message)) for message in sent):  # the client sends only results
        answered = {message.get("tool_call_id") for message in stored}
        return [*stored, *(message for message in sent if message.get("tool_call_id") not in answered)]
    return list(_merged(_steps(stored), sent, client_ids))


def _merged(steps: Sequence[Step], sent: Sequence[ChatMessage], client_ids: frozenset[str]) -> Iterator[ChatMessage]:
    places = {call["id"]: place for place, step in enumerate(steps) for call in step.message.get("tool_calls") or ()}
    result_ids = {result["tool_call_id"] for step in steps for result in step.own_results(client_ids)}
    reached = 0
    for message in sent:
        if message.get("role") == "tool" and message.get("tool_call_id") in result_ids:
            continue  # our results, from a transcript that the client stored, are inserted with their step
        place = max((places[call_id] for call_id in call_ids(message) if call_id in places), default=-1)
        if place < reached:
            yield message
            continue
        yield from _segment(steps[reached : place + 1], message, client_ids)
        reached = place + 1
    for step in steps[reached:]:
        yield from step.own_part(client_ids, text=None)


def _segment(steps: Sequence[Step], message: ChatMessage, client_ids: frozenset[str]) -> Iterator[ChatMessage]:
    """Yield the steps that the client received as one message, whose calls are those of the last step."""
    *hidden, last = steps
    text = "".join(text_of(step.message["content"]) for step in steps)
    unchanged = strip_whitespace(text_of(message.get("content"))) == strip_whitespace(text)
    for step in hidden:
        yield from step.own_part(client_ids, text=step.message["content"] if unchanged else None)
    named = {call.get("id"): call for call in calls_in(message)}
    made = [named.get(call["id"], call) for call in last.message["tool_calls"]]
    content = last.message["content"] if unchanged else message.get("content")
    calls = [call for call in made if call["id"] in named or call["id"] not in client_ids]
    yield with_kept({**last.message, "content": content, "tool_calls": calls}, kept_of(last.message))
    yield from last.own_results(client_ids)


def _steps(stored: Sequence[ChatMessage]) -> list[Step]:
    starts = [index for index, message in enumerate(stored) if message["role"] == "assistant"]
    ends = [*starts[1:], len(stored)]
    return [Step(stored[start], tuple(stored[start + 1 : end])) for start, end in zip(starts, ends, strict=True)]
