"""Builds the messages of a tool loop in which the client executes its tools: those that the client sends, since it may
clear results, omit steps or add notes, with our own calls and results inserted, which it never saw. A loop that the
client resends unchanged is sent exactly as the model wrote it, so that the server's prompt cache stays valid."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from gateway.messages import ChatMessage, last_user_index, text_of
from gateway.runs.call_ids import call_ids
from gateway.runs.fingerprint import strip_whitespace
from gateway.tool_calls import calls_in
from gateway.upstream.kept import kept_of, with_kept


@dataclass(frozen=True, slots=True)
class Step:
    """A stored model step of the run: the assistant message, and the results of our calls in it, which the client never
    saw."""

    message: ChatMessage
    own_results: Sequence[ChatMessage]

    @property
    def calls(self) -> Sequence[dict[str, Any]]:
        """The calls of our tools and of the client's."""
        return self.message.get("tool_calls") or ()

    def part(
        self, client_ids: frozenset[str], text: Any, named: Mapping[str, Any], results: Mapping[str, ChatMessage]
    ) -> Iterator[ChatMessage]:
        """Yield our calls of the step with their results, and those of the client's calls that it sends: `named` are
        its calls and `results` their results, by id. `text` becomes the content of the message."""
        sent = [call["id"] for call in self.calls if call["id"] in named and call["id"] in results]
        dropped = client_ids.difference(sent)
        calls = [named.get(call["id"], call) for call in self.calls if call["id"] not in dropped]
        if calls:
            yield with_kept({**self.message, "content": text, "tool_calls": calls}, kept_of(self.message))
            yield from self.own_results
            yield from (results[call_id] for call_id in sent)


def loop_start(
    messages: Sequence[ChatMessage], client_ids: frozenset[str], own_ids: frozenset[str] = frozenset()
) -> int:
    """Return the index at which the loop begins in a client's messages: at the first message with a call of this run
    or, if there is none, after the last user message. A transcript that we stored has steps with only calls of ours,
    `own_ids`, before those of the client's tools."""
    for index, message in enumerate(messages):
        if not client_ids.isdisjoint(call_ids(message)):
            while index and _names_any(messages[index - 1], own_ids):
                index -= 1
            return index
    return last_user_index(messages) + 1


def _names_any(message: ChatMessage, ids: frozenset[str]) -> bool:
    """Return True if a message makes one of these calls, or has the result of one."""
    return message.get("tool_call_id") in ids or not ids.isdisjoint(call_ids(message))


def loop_messages(
    stored: Sequence[ChatMessage], sent: Sequence[ChatMessage], client_ids: frozenset[str]
) -> list[ChatMessage]:
    """Return the messages of the loop for the model. `stored` are the run's messages after the user message, `sent` the
    client's messages from the start of the loop, and `client_ids` the ids of the run's calls of client tools."""
    if all(client_ids.isdisjoint(call_ids(message)) for message in sent):  # the client sends only results
        answered = {message.get("tool_call_id") for message in stored}
        return [*stored, *(message for message in sent if message.get("tool_call_id") not in answered)]
    return list(_merged(_steps(stored, client_ids), sent, client_ids))


def _merged(steps: Sequence[Step], sent: Sequence[ChatMessage], client_ids: frozenset[str]) -> Iterator[ChatMessage]:
    places = {call["id"]: place for place, step in enumerate(steps) for call in step.calls}
    # Our results, from a transcript that the client stored, are inserted with their step.
    inserted = {result["tool_call_id"] for step in steps for result in step.own_results}
    answers = {str(message.get("tool_call_id")): message for message in sent if message.get("role") == "tool"}
    results = {call_id: answers[call_id] for call_id in client_ids & answers.keys()}
    reached = 0
    for message in sent:
        if message.get("role") == "tool" and message.get("tool_call_id") in inserted:
            continue
        place = max((places[call_id] for call_id in call_ids(message) if call_id in places), default=-1)
        if place < reached:
            yield message
            continue
        # Calls of an earlier run of the turn, which failed or was replaced
        others = [call for call in calls_in(message) if call.get("id") not in places and call.get("id") in answers]
        segment = list(_segment(steps[reached : place + 1], message, results, client_ids, others))
        yield from segment
        inserted.update(part["tool_call_id"] for part in segment if part.get("role") == "tool")
        reached = place + 1
    for step in steps[reached:]:
        yield from step.part(client_ids, None, {}, {})


def _segment(
    steps: Sequence[Step],
    message: ChatMessage,
    results: Mapping[str, ChatMessage],
    client_ids: frozenset[str],
    others: Sequence[dict[str, Any]],
) -> Iterator[ChatMessage]:
    """Yield the steps that the client sends as one message: some it received as one, since the earlier ones only had
    calls of ours; others it joined itself (Mastra). Those are followed by their `results`. `others` are the message's
    calls of other runs."""
    *earlier, last = steps
    text = "".join(text_of(step.message["content"]) for step in steps)
    unchanged = strip_whitespace(text_of(message.get("content"))) == strip_whitespace(text)
    named = {str(call.get("id")): call for call in calls_in(message)}
    for step in earlier:
        yield from step.part(client_ids, step.message["content"] if unchanged else None, named, results)
    made = [named.get(call["id"], call) for call in last.calls]
    content = last.message["content"] if unchanged else message.get("content")
    calls = [*others, *(call for call in made if call["id"] in named or call["id"] not in client_ids)]
    yield with_kept({**last.message, "content": content, "tool_calls": calls}, kept_of(last.message))
    yield from last.own_results


def _steps(stored: Sequence[ChatMessage], client_ids: frozenset[str]) -> list[Step]:
    starts = [index for index, message in enumerate(stored) if message["role"] == "assistant"]
    results = [
        [result for result in stored[start + 1 : end] if result["tool_call_id"] not in client_ids]
        for start, end in pairwise([*starts, len(stored)])
    ]
    return [Step(stored[start], own_results) for start, own_results in zip(starts, results, strict=True)]
