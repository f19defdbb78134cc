"""Parses the body of a model server's answer: server-sent events, or one JSON document.

Both are limited in size, and the cost per byte is constant however the bytes are split into packets."""

import codecs
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import httpx2
from django.conf import settings

from gateway.errors import RequestRefused, UpstreamUnreachable
from gateway.tool_calls import calls_in
from gateway.upstream.error_body import is_error
from gateway.upstream.fault_classes import BOTCHED_CALL
from gateway.upstream.faults import BROKE_OFF, fault_in_answer
from gateway.upstream.surrogates import SurrogateJoiner
from memories.errors import TooLarge
from memories.json_input import finite

Chunk = dict[str, Any]

DONE: Chunk = {}
"""Represents `data: [DONE]`."""

# A line or a body may be larger than the text in it: escaped characters, log probabilities, several choices.
_BODY_FACTOR = 8
_MAX_ERROR_BYTES = 64_000
CUT_OFF = f"{BROKE_OFF} in the middle of its answer."
NO_CHOICE = "The model server's answer contains no choice."

# Finish reasons of answers that the server could not finish: OpenRouter and Mistral, SGLang, Z.ai, DeepSeek.
_FAILED_REASONS = frozenset({"error", "abort", "network_error", "insufficient_system_resource"})
# Finish reasons of answers with a tool call that the server could not parse: Gemini behind proxies.
_BAD_CALL_REASONS = frozenset({"malformed_function_call", "unexpected_tool_call"})
_BAD_CALL = "The model's tool call could not be parsed."
# OpenAI's finish reasons by those of other servers, in lower case. docs/upstreams.md has the sources.
_FINISH_REASONS: Mapping[str, str] = {
    name: reason
    for reason, names in {
        "stop": "stop end_turn stop_sequence eos_token",
        "length": "length max_tokens model_length model_context_window_exceeded",
        "tool_calls": "tool_calls tool_use",
        "function_call": "function_call",
        "content_filter": "content_filter sensitive safety recitation blocklist prohibited_content spii image_safety "
        "refusal content_filtered guardrail_intervened",
    }.items()
    for name in names.split()
}

# Constants that are not valid JSON. -Infinity becomes OpenAI's log probability for it, all others become null.
_CONSTANTS: dict[str, Any] = {"-Infinity": -9999.0}
_decoded = json.JSONDecoder(parse_constant=_CONSTANTS.get, parse_float=finite).decode


def max_body_bytes() -> int:
    """Return the size limit for one line of a stream, and for one answer that is not streamed."""
    return int(settings.ANSWER_BYTES) * _BODY_FACTOR


class LineSplitter:
    """Splits bytes into lines, buffering an incomplete last line. A byte order mark before the first line is dropped.
    Raises TooLarge if a line exceeds the limit."""

    def __init__(self) -> None:
        self._buffer, self._mark = bytearray(), codecs.BOM_UTF8
        self._max_bytes = max_body_bytes()

    def feed(self, data: bytes) -> list[bytes]:
        """Add data and return the lines that it completes."""
        first, newline, rest = data.partition(b"\n")
        self._buffer += first
        if len(self._buffer) > self._max_bytes:
            raise TooLarge("The model server sent a line that exceeds the gateway's size limit.")
        if not newline:
            return []
        *lines, last = rest.split(b"\n")
        complete = [bytes(self._buffer).removeprefix(self._mark), *lines]
        self._mark = b""
        self._buffer = bytearray(last)
        return complete


class JSONDocument:
    """Buffers an answer that is one JSON document. Raises TooLarge if it exceeds `max_bytes`."""

    def __init__(self, max_bytes: int) -> None:
        self._bytes = bytearray()
        self._max_bytes = max_bytes

    def feed(self, data: bytes) -> None:
        self._bytes += data
        if len(self._bytes) > self._max_bytes:
            raise TooLarge("The answer exceeds the gateway's size limit and was cut off.")

    @property
    def begun(self) -> bool:
        return bool(self._bytes)

    def feed_line(self, line: bytes) -> None:
        """Add a line of a stream that is not an event. Lines before the start of a JSON value are ignored."""
        if self.begun or line.lstrip().startswith((b"{", b"[")):
            self.feed(line + b"\n")

    def completion(self, request: httpx2.Request) -> dict[str, Any]:
        """Return the document, which must be a completion with choices. Raises ValueError, UpstreamUnreachable, or the
        error that the document describes."""
        answer = json.loads(self._bytes, parse_constant=_CONSTANTS.get, parse_float=finite)
        raise_if_failed(answer, request)
        if not isinstance(answer, dict) or not (choices := choices_of(answer)):
            raise UpstreamUnreachable(NO_CHOICE)
        return answer | {"choices": choices}

    def embeddings(self, request: httpx2.Request) -> bytes:
        """Return the bytes of a list of vectors. A large document is not parsed, since that would block the event loop.
        Raises ValueError, or the DomainError that the document describes."""
        if len(self._bytes) <= _MAX_ERROR_BYTES and is_error(answer := json.loads(self._bytes)):
            raise fault_in_answer(answer, request)
        if not self._bytes.lstrip().startswith(b"{") or b'"data"' not in self._bytes:
            raise UpstreamUnreachable("The model server's answer contains no vectors.")
        return bytes(self._bytes)


class EventReader:
    """Parses the lines of a stream that answers `request`. `single_choice`: see `normalised`.

    A line is parsed when it arrives, since some servers send no empty line between events. If it is not complete, the
    data of its event is several lines."""

    def __init__(self, request: httpx2.Request, *, single_choice: bool) -> None:
        self._request, self._single_choice = request, single_choice
        self._in_error = False  # within an event of the type "error"
        self._halves = SurrogateJoiner()
        self._begun = bytearray()  # the data so far of an event with several lines

    def chunk_of(self, line: bytes) -> Chunk | None:
        """Return the chunk that a line completes, DONE at the end, and None for any other line. Raises ValueError, and
        DomainErrors for errors that the server reports within the stream."""
        if not line.startswith(b"data:"):
            if line.startswith(b"error:"):  # llama.cpp before September 2025
                raise fault_in_answer(line[6:].strip(), self._request)
            if line.startswith(b"event:"):
                self._in_error = line[6:].strip() == b"error"
            elif not line.strip():  # the end of an event
                self._in_error = False
                event, self._begun = self._begun, bytearray()
                return self._parsed(event) if event else None
            return None
        if not (payload := line[5:].strip()):
            return None
        if self._in_error:
            raise fault_in_answer(payload, self._request)
        if not self._begun:
            if payload == b"[DONE]":
                return DONE
            with suppress(ValueError):
                return self._parsed(payload)
        self._begun += payload + b"\n"
        if len(self._begun) > max_body_bytes():
            raise TooLarge("The model server sent an event that exceeds the gateway's size limit.")
        return None

    def _parsed(self, data: bytes | bytearray) -> Chunk:
        """Return the chunk in the data of an event. Raises ValueError, and the error that the chunk contains."""
        chunk = _decoded(data.decode(errors="replace"))
        if not isinstance(chunk, dict):
            raise ValueError("a chunk that is not an object")
        raise_if_failed(chunk, self._request)
        self._halves.join(choices_of(normalised(chunk, single_choice=self._single_choice)))
        return chunk


def chunk_of_completion(answer: dict[str, Any]) -> Chunk:
    """Return a completion as the only chunk of a stream, for servers that do not stream. A missing `finish_reason`
    becomes "stop" only if the choice has content."""
    given = choices_of(answer)
    if all("text" in choice for choice in given):
        return answer  # /completions, whose chunks look like the completion
    choices = []
    for choice in given:
        message = choice.get("message")
        delta = dict(message) if isinstance(message, dict) else {}
        if delta.get("tool_calls"):
            delta["tool_calls"] = [call | {"index": at} for at, call in enumerate(calls_in(delta))]
        rest = {name: value for name, value in choice.items() if name != "message"}
        content = delta.get("content")
        parts = content if isinstance(content, list) else [{"text": content}]
        filled = delta.get("tool_calls") or any(isinstance(part, dict) and part.get("text") for part in parts)
        reason = choice.get("finish_reason") or ("stop" if filled else None)
        choices.append(rest | {"delta": delta, "finish_reason": reason})
    return answer | {"object": "chat.completion.chunk", "choices": choices}


def holds_whole_message(chunk: Chunk) -> bool:
    """Return True if a chunk has a complete message instead of a delta."""
    return any("message" in choice and "delta" not in choice for choice in choices_of(chunk))


def raise_if_failed(answer: Any, request: httpx2.Request) -> None:
    """Raise the error that a chunk or a completion contains, or UpstreamUnreachable if the server could not finish."""
    if is_error(answer):
        raise fault_in_answer(answer, request)
    choices = choices_of(answer) if isinstance(answer, dict) else ()
    reason = choices[0].get("finish_reason") if choices else None
    if not isinstance(reason, str):
        return
    if reason.lower() in _FAILED_REASONS:
        raise UpstreamUnreachable(CUT_OFF)
    if reason.lower() in _BAD_CALL_REASONS:
        raise RequestRefused(_BAD_CALL, upstream_code=BOTCHED_CALL, server_message=_BAD_CALL, status=400)


def normalised(answer: Chunk, *, single_choice: bool) -> Chunk:
    """Give a chunk or a completion OpenAI's finish reasons and integer indexes, without a usage or a message that is
    not an object, in place, and return it. With `single_choice` the index is 0 whatever the server says."""
    if not isinstance(answer.get("usage", {}), dict):
        del answer["usage"]
    choices = choices_of(answer)
    for choice in choices:
        for name in ("delta", "message"):
            if not isinstance(choice.get(name), dict | None):
                choice[name] = {}
        reason, index = choice.get("finish_reason"), choice.get("index", 0)
        if isinstance(reason, str):
            choice["finish_reason"] = _FINISH_REASONS.get(reason.lower(), reason)
        if index == 0:
            continue
        if single_choice and len(choices) == 1:
            choice["index"] = 0
        elif isinstance(index, str) and index.isdecimal() and len(index) < 4:
            choice["index"] = int(index)
    return answer


def has_content(chunk: Chunk) -> bool:
    """Return True if a chunk holds text, reasoning, a tool call or a finish reason. Some servers send only a role
    before the model begins to answer."""
    for choice in choices_of(chunk):
        filled = any(value for name, value in (choice.get("delta") or {}).items() if name != "role")
        if filled or choice.get("text") or choice.get("finish_reason"):
            return True
    return False


def choices_of(chunk: Chunk) -> list[dict[str, Any]]:
    """Return the choices of a chunk or completion that are objects."""
    choices = chunk.get("choices")
    return [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []


def is_finished(chunk: Chunk) -> bool:
    """Return True if all choices of a chunk have a finish reason."""
    return all(choice.get("finish_reason") for choice in choices_of(chunk))
