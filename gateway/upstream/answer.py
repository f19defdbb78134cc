"""The body of a model server's answer: server-sent events cut into lines, or one JSON document.

Both are bounded, and the work for each byte is constant however the bytes are cut into packets."""

import json
from collections.abc import Mapping
from typing import Any

import httpx2
from django.conf import settings

from gateway.errors import RequestRefused, UpstreamUnreachable
from gateway.upstream.error_body import is_error
from gateway.upstream.fault_classes import BOTCHED_CALL
from gateway.upstream.faults import BROKE_OFF, fault_in_answer
from memories.errors import TooLarge

Chunk = dict[str, Any]

DONE: Chunk = {}
"""The chunk that stands for `data: [DONE]`."""

# A line or a body may be larger than the text it carries: escaped characters, log probabilities, several choices.
_BODY_FACTOR = 8
_LARGEST_ERROR = 64_000
CUT_OFF = f"{BROKE_OFF} in the middle of its answer."
NO_CHOICE = "The model server gave an answer that holds no choice."

# Why an answer ended that its server could not finish: OpenRouter and Mistral, SGLang, Z.ai, DeepSeek.
_FAILED_ENDS = frozenset({"error", "abort", "network_error", "insufficient_system_resource"})
# Why an answer ended whose call its server could not read: Gemini behind proxies.
_BOTCHED_ENDS = frozenset({"malformed_function_call", "unexpected_tool_call"})
_BOTCHED = "The model's call of a tool could not be read."
# Why an answer ended, in lower case, as OpenAI names it. docs/upstreams.md has the sources.
_ENDS: Mapping[str, str] = {
    name: end
    for end, names in {
        "stop": "stop end_turn stop_sequence eos_token",
        "length": "length max_tokens model_length model_context_window_exceeded",
        "tool_calls": "tool_calls tool_use",
        "function_call": "function_call",
        "content_filter": "content_filter sensitive safety recitation blocklist prohibited_content spii image_safety "
        "refusal content_filtered guardrail_intervened",
    }.items()
    for name in names.split()
}

# What some servers write for a number that JSON does not have. OpenAI writes the first as that log probability.
_NO_NUMBERS: dict[str, Any] = {"-Infinity": -9999.0}
_decoded = json.JSONDecoder(parse_constant=_NO_NUMBERS.get).decode


def longest_body() -> int:
    """Return the largest number of bytes of one line of a stream, and of one answer that does not stream."""
    return int(settings.ANSWER_BYTES) * _BODY_FACTOR


class Lines:
    """Cuts bytes into lines, and keeps an incomplete line for the next bytes. Raises TooLarge for a line without
    end."""

    def __init__(self) -> None:
        self._waiting = bytearray()
        self._most = longest_body()

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are complete with these bytes."""
        first, newline, rest = data.partition(b"\n")
        self._waiting += first
        if len(self._waiting) > self._most:
            raise TooLarge("The model server sent a line that is longer than the gateway reads.")
        if not newline:
            return []
        *lines, last = rest.split(b"\n")
        complete = [bytes(self._waiting), *lines]
        self._waiting = bytearray(last)
        return complete

    def rest(self) -> bytes:
        """Return what came after the last newline."""
        return bytes(self._waiting)


class Body:
    """Collects an answer that is one JSON document, of `most` bytes if that is given. Raises TooLarge."""

    def __init__(self, most: int = 0) -> None:
        self._bytes = bytearray()
        self._most = most or longest_body()

    def feed(self, data: bytes) -> None:
        """Take in the next bytes."""
        self._bytes += data
        if len(self._bytes) > self._most:
            raise TooLarge("The answer is longer than the gateway keeps; it was cut off.")

    @property
    def begun(self) -> bool:
        """Return True if the body holds anything."""
        return bool(self._bytes)

    def maybe(self, line: bytes) -> None:
        """Take a line of a stream that is not an event, starting with the first that begins a JSON object."""
        if self.begun or line.lstrip().startswith((b"{", b"[")):
            self.feed(line + b"\n")

    def completion(self, request: httpx2.Request) -> dict[str, Any]:
        """Return the answer unchanged, if it has choices. Raises ValueError, UpstreamUnreachable, or the error that the
        body describes."""
        answer = json.loads(self._bytes, parse_constant=_NO_NUMBERS.get)
        check_sound(answer, request)
        if not isinstance(answer, dict) or not isinstance(answer.get("choices"), list) or not answer["choices"]:
            raise UpstreamUnreachable(NO_CHOICE)
        return answer

    def passed(self, request: httpx2.Request) -> bytes:
        """Return a list of vectors unchanged. A large one is not parsed as JSON, which would hold up all other
        requests. Raises ValueError, or the DomainError that the body describes."""
        if len(self._bytes) <= _LARGEST_ERROR and is_error(answer := json.loads(self._bytes)):
            raise fault_in_answer(answer, request)
        if not self._bytes.lstrip().startswith(b"{") or b'"data"' not in self._bytes:
            raise UpstreamUnreachable("The model server gave an answer that holds no vectors.")
        return bytes(self._bytes)


class Events:
    """Reads the lines of a stream that answers `request`. `alone`: see `usual`."""

    def __init__(self, request: httpx2.Request, *, alone: bool) -> None:
        self._request, self._alone = request, alone
        self._failed = False  # within an event that calls itself an error

    def chunk_of(self, line: bytes) -> Chunk | None:
        """Return the chunk in a line, DONE at the end, and None for a line without data. Raises ValueError, and
        DomainErrors for errors that the server tells within the stream."""
        if not line.startswith(b"data:"):
            if line.startswith(b"error:"):  # llama.cpp before September 2025
                raise fault_in_answer(line[6:].strip(), self._request)
            if line.startswith(b"event:"):
                self._failed = line[6:].strip() == b"error"
            elif not line.strip():  # the end of an event
                self._failed = False
            return None
        if not (payload := line[5:].strip()):
            return None
        if self._failed:
            raise fault_in_answer(payload, self._request)
        if payload == b"[DONE]":
            return DONE
        chunk = _decoded(payload.decode())
        if not isinstance(chunk, dict):
            raise ValueError("a chunk that is not an object")
        check_sound(chunk, self._request)
        return usual(chunk, alone=self._alone)


def chunk_of_completion(answer: dict[str, Any]) -> Chunk:
    """Return a whole answer as the only chunk of a stream, for servers that do not stream. A choice without content
    gets no made-up `finish_reason`. Raises UpstreamUnreachable if there are no choices."""
    given = answer.get("choices")
    if not isinstance(given, list) or not given or not all(isinstance(choice, dict) for choice in given):
        raise UpstreamUnreachable(NO_CHOICE)
    if all("text" in choice for choice in given):
        return answer  # /completions, where chunks look like the whole answer
    choices = []
    for choice in given:
        message = choice.get("message")
        delta = dict(message) if isinstance(message, dict) else {}
        if isinstance(calls := delta.get("tool_calls"), list):
            delta["tool_calls"] = [call | {"index": at} for at, call in enumerate(calls) if isinstance(call, dict)]
        rest = {name: value for name, value in choice.items() if name != "message"}
        content = delta.get("content")
        parts = content if isinstance(content, list) else [{"text": content}]
        said = delta.get("tool_calls") or any(isinstance(part, dict) and part.get("text") for part in parts)
        choices.append(
            rest | {"delta": delta, "finish_reason": choice.get("finish_reason") or ("stop" if said else None)}
        )
    return answer | {"object": "chat.completion.chunk", "choices": choices}


def is_whole(chunk: Chunk) -> bool:
    """Return True if an event of a stream holds complete messages, as a whole answer does."""
    return any("message" in choice and "delta" not in choice for choice in choices_of(chunk))


def check_sound(answer: Any, request: httpx2.Request) -> None:
    """Raise the error that a chunk or a whole answer is, or UpstreamUnreachable if its server could not finish it."""
    if is_error(answer):
        raise fault_in_answer(answer, request)
    choices = choices_of(answer) if isinstance(answer, dict) else ()
    end = choices[0].get("finish_reason") if choices else None
    if not isinstance(end, str):
        return
    if end.lower() in _FAILED_ENDS:
        raise UpstreamUnreachable(CUT_OFF)
    if end.lower() in _BOTCHED_ENDS:
        raise RequestRefused(_BOTCHED, upstream_code=BOTCHED_CALL, said=_BOTCHED, status=400)


def usual(answer: Chunk, *, alone: bool) -> Chunk:
    """Name the ends of a chunk or a whole answer as OpenAI does, and return it. `alone`: one choice was asked for, so
    its number is 0 whatever the server says."""
    choices = choices_of(answer)
    for choice in choices:
        end, index = choice.get("finish_reason"), choice.get("index", 0)
        if isinstance(end, str):
            choice["finish_reason"] = _ENDS.get(end.lower(), end)
        if index == 0:
            continue
        if alone and len(choices) == 1:
            choice["index"] = 0
        elif isinstance(index, str) and index.isdecimal() and len(index) < 4:
            choice["index"] = int(index)
    return answer


def says_something(chunk: Chunk) -> bool:
    """Return True if a chunk holds text, reasoning, a tool call or an end. Some servers send a role alone before the
    model has begun to answer."""
    for choice in choices_of(chunk):
        delta = choice.get("delta")
        said = isinstance(delta, dict) and any(value for name, value in delta.items() if name != "role")
        if said or choice.get("text") or choice.get("finish_reason"):
            return True
    return False


def choices_of(chunk: Chunk) -> list[dict[str, Any]]:
    """Return the choices of a chunk that are objects."""
    choices = chunk.get("choices")
    return [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []


def is_finished(chunk: Chunk) -> bool:
    """Return True if the first choice of a chunk says why the model stopped."""
    return any(choice.get("finish_reason") for choice in choices_of(chunk)[:1])
