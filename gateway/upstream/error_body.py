"""Reads a model server's refusal from the forms that servers give it; its key and address are left out.

The forms: OpenAI's `{"error": {…}}`; the same in a list (Gemini); with `error` as a text (xAI, TGI, vLLM, LM Studio);
flat with `message` (SGLang, DashScope, Cohere); flat with a `detail` in the message or beside it (Mistral, FastAPI); a
cause inside `metadata.raw` (OpenRouter); and plain text."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from memories.storable import storable_text

_QUOTED = 300
_CODE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_PARAM = re.compile(r"[A-Za-z0-9_.\[\]-]{1,200}")
_ADDRESS = re.compile(r"(?:https?|wss?)://[^\s\"'<>)\]}]+", re.IGNORECASE)
_KEY = re.compile(r"\b(?:sk|gsk|xai|key|pk)[-_][A-Za-z0-9*_-]{6,}|\bAIza[\w-]{10,}|(?<=bearer )\S+", re.IGNORECASE)
_HIDDEN = "…"
# Codes that name no reason: the message is more useful.
_GENERAL = frozenset({"", "invalid_request_error", "invalid_parameter_error", "bad_request", "BadRequestError"})
_CONTEXT = re.compile(
    r"maximum context length|exceeds? the (?:available )?context (?:window|size)|greater than the context length|"
    r"longer than the (?:model's )?context length|input token count.{0,40}exceeds|exceeded model token limit|"
    r"exceed_context_size|prompt is too long|context_length_exceeded|ContextWindowExceededError|"
    r"context length of only|is too large to process|`inputs` (?:tokens \+|must have less than)",
    re.IGNORECASE | re.DOTALL,
)
_TOOLS = r"(?<![\w.])(?:tools?(?! ?choice| ?messages?| ?roles?| ?results?)|functions?)"
_CALLING = rf"(?:{_TOOLS}[ -](?:use|calls?|calling)|{_TOOLS})\b"
# Some servers say so with the status of a missing model, or of a fault of theirs. docs/upstreams.md has the sources.
_NO_TOOLS = re.compile(
    rf"(?:n[o']t|no longer) (?:currently )?support (?:the use of )?{_CALLING}|"
    rf"(?<!custom )(?<!strict )(?<!multiple )(?<!parallel )(?<!hosted )(?<!-in )"
    rf"{_CALLING}[`'\"]?(?: param| with function calling)?(?: (?:is|are|has|have))? "
    rf"(?:unsupported|disabled|not (?:yet |currently |been |fully )*(?:support(?:ed)?|enabled|available))|"
    rf"endpoints? (?:found )?that supports? {_CALLING}|"
    rf"(?:unsupported|unknown) param(?:eter)?s?: [`'\"]?tools\b(?![.\[])|"
    rf"--enable-auto-tool-choice|tools param requires",
    re.IGNORECASE,
)
# In the words of LiteLLM, OpenRouter, DeepSeek, Mistral: docs/upstreams.md has the sources.
_NO_MODEL = re.compile(
    r"invalid model name passed|is not a valid model id\b|\bmodel not exist\b|^invalid model: ", re.IGNORECASE
)
_NO_MODEL_CODE = "model_not_found"
# What a server says with 404 where it has nothing at all at an address: FastAPI (vLLM, SGLang, LiteLLM), Go (Ollama),
# llama.cpp, Azure, OpenAI, Express, LM Studio, a page of a proxy, or nothing.
_NOTHING_THERE = re.compile(
    r"(?:404\W*)?(?:(?:page|file|path|resource|route) )?(?:not found\W*)?|<.*"
    r"|(?:invalid url|cannot (?:post|get)|unexpected endpoint|no route)\b.*",
    re.IGNORECASE,
)
_CONTEXT_TYPE = "exceed_context_size_error"  # types of errors that are used like codes
_FILTERED = frozenset({"content_filter", "ResponsibleAIPolicyViolation"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidError:
    """A server's refusal. `status` is the one in the body; 0 if there is none."""

    message: str = ""
    code: str = ""
    param: str | None = None
    status: int = 0


def read_error(body: Any, *, secrets: Iterable[str] = ()) -> SaidError:
    """Read an error body: bytes, text or parsed JSON. `secrets` are removed from quoted text."""
    said = _read(_parsed(body))
    if said.code in _GENERAL or said.code.isdecimal():
        if _CONTEXT.search(said.message):
            said = replace(said, code="context_length_exceeded")
        elif said.code in _GENERAL:
            said = replace(said, code="")
    return replace(said, message=_quoted(said.message, secrets))


def knows_no_model(said: SaidError) -> bool:
    """Return True if an error says that the server does not know the model."""
    return said.code == _NO_MODEL_CODE or bool(_NO_MODEL.search(said.message))


def finds_nothing(said: SaidError) -> bool:
    """Return True if an error with the status 404 speaks of the address that was asked, not of the model."""
    return said.code != _NO_MODEL_CODE and bool(_NOTHING_THERE.fullmatch(said.message.strip()))


def takes_no_tools(message: str) -> bool:
    """Return True if an error says that the model, or its server as it is started, takes no tools at all."""
    return bool(_NO_TOOLS.search(message))


def is_error(answer: Any) -> bool:
    """Return True if JSON with a status of success, or an event of a stream, is an error."""
    if isinstance(answer, list):
        return bool(answer) and is_error(answer[0])
    return isinstance(answer, dict) and bool(answer.get("error") or answer.get("object") == "error")


def _parsed(body: Any) -> Any:
    if not isinstance(body, bytes | str):
        return body
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace") if isinstance(body, bytes) else body


def _read(body: Any, depth: int = 0) -> SaidError:
    if isinstance(body, list):
        return _read(body[0], depth) if body and depth < 3 else SaidError()
    if isinstance(body, str):
        return SaidError(message=body)
    if not isinstance(body, dict):
        return SaidError()
    error = body.get("error")
    if isinstance(error, dict):
        return _of_object(error, depth)
    if isinstance(error, str) and error:
        return replace(_of_object(body, depth), message=error)
    return _of_object(body, depth)


def _of_object(error: dict[str, Any], depth: int) -> SaidError:
    """Read an error object. Its message may be a text, hold a list of details, or quote another server's error."""
    message, param = error.get("message"), error.get("param")
    details = message.get("detail") or message.get("error") if isinstance(message, dict) else error.get("detail")
    if isinstance(details, dict):
        details = details.get("error") or details.get("message")
    if isinstance(details, list):
        message, param = _of_details(details, param)
    elif isinstance(details, str):
        message = details
    code, status = _code(error.get("code"))
    said = SaidError(
        message=message if isinstance(message, str) else "",
        code=_inner_code(error) or code or ("context_length_exceeded" if error.get("type") == _CONTEXT_TYPE else ""),
        param=param if isinstance(param, str) and _PARAM.fullmatch(param) else None,
        status=status,
    )
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if raw and depth < 2:
        cause = _read(_parsed(raw), depth + 1)
        return replace(
            said, message=cause.message or said.message, code=cause.code or said.code, param=cause.param or said.param
        )
    return said


def _of_details(details: list[Any], param: Any) -> tuple[str, Any]:
    """Return message and parameter of a list of `{loc, msg}`."""
    told = [detail for detail in details if isinstance(detail, dict)]
    places = [
        [str(part) for part in detail["loc"] if part != "body"] if isinstance(detail.get("loc"), list) else []
        for detail in told
    ]
    messages = [
        f"{'.'.join(place)}: {detail.get('msg')}" if place else str(detail.get("msg"))
        for place, detail in zip(places, told, strict=True)
    ]
    return "; ".join(messages), param or next((".".join(place) for place in places if place), None)


def _code(given: Any) -> tuple[str, int]:
    """Return code and status; a number that is an HTTP status is not a code."""
    if isinstance(given, bool):
        return "", 0
    if isinstance(given, int):
        return ("", given) if 100 <= given < 600 else (str(given)[:64], 0)
    if isinstance(given, str) and _CODE.fullmatch(given):
        status = int(given) if given.isdecimal() and len(given) == 3 else 0
        return ("", status) if 100 <= status < 600 else (given, 0)
    return "", 0


def _inner_code(error: dict[str, Any]) -> str:
    inner = error.get("innererror")
    found = (error.get("code"), inner.get("code") if isinstance(inner, dict) else None)
    return "content_filter" if any(isinstance(code, str) and code in _FILTERED for code in found) else ""


def _quoted(message: str, secrets: Iterable[str]) -> str:
    for secret in secrets:
        if len(secret) > 3:
            message = message.replace(secret, _HIDDEN)
    message = _KEY.sub(_HIDDEN, _ADDRESS.sub(_HIDDEN, message))
    return storable_text(" ".join(message.split()))[:_QUOTED]
