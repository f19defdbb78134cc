"""Parses the error bodies of model servers and removes the key and the address from them.

The formats: OpenAI's `{"error": {…}}`; the same in a list (Gemini); with `error` as a string (xAI, TGI, vLLM, LM
Studio), or a list as `error` or `errors` (Cloudflare); flat with `message` (SGLang, DashScope, Cohere); flat with
`detail`, inside `message` or next to it (Mistral, FastAPI); with a cause inside `metadata.raw` (OpenRouter); and plain
text."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from memories.storable import storable_text

REQUEST_STATUSES = frozenset({400, 413, 422})
"""The statuses with which the request is at fault, not the key or the server."""
MAX_ERROR_BYTES = 1_000_000  # of an answer with an error that are read; some quote the request
_MAX_MESSAGE_CHARS = 300
_MAX_REDACTED_CHARS = 20_000  # the rest of a message is cut off before secrets are removed
_CODE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_PARAM = re.compile(r"[A-Za-z0-9_.\[\]-]{1,200}")
_ADDRESS = re.compile(r"(?:https?|wss?)://[^\s\"'<>)\]}]+", re.IGNORECASE)
_KEY = re.compile(r"\b(?:sk|gsk|xai|key|pk)[-_][A-Za-z0-9*_-]{6,}|\bAIza[\w-]{10,}|(?<=bearer )\S+", re.IGNORECASE)
_HIDDEN = "…"
# Codes without a specific reason: the message is more useful.
_GENERAL = frozenset({"", "invalid_request_error", "invalid_parameter_error", "bad_request", "BadRequestError"})
_CONTEXT = re.compile(
    r"maximum context length|exceeds? (?:the )?(?:available )?context (?:window|size|limit)|context window exceeds|"
    r"greater than the context length|context length (?:of|is) only|exceeded (?:model token limit|max context length)|"
    r"longer than the (?:model's context|context|maximum model) length|(?:prompt|input) is too long|"
    r"input token count.{0,40}exceeds|token count of \d+ exceeds|maximum prompt length|range of input length|"
    r"exceed_context_size|context_length_exceeded|ContextWindowExceededError|is too large to process|"
    r"`inputs` (?:tokens \+|must have less than)",
    re.IGNORECASE | re.DOTALL,
)
_TOOLS = r"(?<![\w.])(?:tools?(?! ?choice| ?messages?| ?roles?| ?results?)|functions?)"
_CALLING = rf"(?:{_TOOLS}[ -](?:use|calls?|calling)|{_TOOLS})\b"
# Some servers send this with the status of a missing model or of a server error. docs/upstreams.md has the sources.
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
_MEDIA = r"(?:image|audio|video|vision|file|multimodal)\w*"
_NO_MEDIA = re.compile(
    rf"(?:n[o']t support|that supports?) {_MEDIA}|{_MEDIA} inputs? (?:is|are) not (?:supported|enabled)|"
    rf"not a multimodal model|image_url is only supported|"
    rf"(?:unknown variant|unsupported content part type:) [`'\"]?(?:{_MEDIA}|input_audio)",
    re.IGNORECASE,
)
# Messages of LiteLLM, OpenRouter, DeepSeek and Mistral; xAI and Gemini; Anthropic. docs/upstreams.md has the sources.
_NO_MODEL = re.compile(
    r"invalid model name passed|is not a valid model id\b|\bmodel not exist\b|^invalid model: ", re.IGNORECASE
)
_NO_MODEL_CODE = "model_not_found"
_NO_ENDPOINT = ("No endpoints found that can", "No endpoints found that support")  # OpenRouter
_NO_KEY = re.compile(r"(?:incorrect api key|api key (?:not (?:valid|found)|expired))\b", re.IGNORECASE)
# Messages of Anthropic, of Z.ai and MiniMax, of SiliconFlow, and of Zhipu, with any status
_NO_CREDIT = re.compile(
    r"credit balance is too low to access the|\binsufficient (?:account )?balance\b|\baccount balance is insufficient|"
    r"余额不足",
    re.IGNORECASE,
)
_NO_CREDIT_CODES = frozenset({"insufficient_quota", "credit_balance_exhausted", "billing_not_active", "Arrearage"})
# Messages with a 404 for an unknown address: FastAPI (vLLM, SGLang, LiteLLM), Go (Ollama), llama.cpp, Azure, OpenAI,
# Express, LM Studio, a proxy's HTML page, or an empty one.
_UNKNOWN_ADDRESS = re.compile(
    r"(?:404\W*)?(?:(?:page|file|path|resource|route) )?(?:not found\W*)?|<.*"
    r"|(?:invalid url|cannot (?:post|get)|unexpected endpoint|no route)\b.*",
    re.IGNORECASE,
)
# Error types of llama.cpp and Kimi that are used like codes
_TYPE_CODES = {
    "exceed_context_size_error": "context_length_exceeded",
    "exceeded_current_quota_error": "insufficient_quota",
}
_FILTERED = frozenset({"content_filter", "ResponsibleAIPolicyViolation", "data_inspection_failed"})
# Codes of errors of the request, with whatever status
_REQUEST_CODES = frozenset({"context_length_exceeded", "content_filter", "tool_use_failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedError:
    """An error as a server described it. `status` is the one in the body, or 0, and `retry_after` Gemini's seconds."""

    message: str = ""
    code: str = ""
    param: str | None = None
    status: int = 0
    retry_after: str = ""


def read_error(body: Any, *, secrets: Iterable[str] = ()) -> ParsedError:
    """Parse an error body given as bytes, text or parsed JSON. `secrets` are removed from the message."""
    error = _read(_decoded(body))
    if error.code in _GENERAL or error.code.isdecimal():
        if _CONTEXT.search(error.message):
            error = replace(error, code="context_length_exceeded")
        elif error.code in _GENERAL:
            error = replace(error, code="")
    return replace(error, message=_redacted(error.message, secrets))


def status_meant(status: int, error: ParsedError) -> int:
    """Return the usual status of an error: some servers report a key, credit or model that they do not have as an
    error of the request, or the reverse."""
    is_refusal = status in REQUEST_STATUSES
    if error.code in _REQUEST_CODES or (status == 404 and error.message.startswith(_NO_ENDPOINT)):
        return status if is_refusal else 400
    if error.code in _NO_CREDIT_CODES or _NO_CREDIT.search(error.message):
        return 402
    if is_refusal and _NO_KEY.match(error.message):
        return 401
    is_unknown_model = error.code == _NO_MODEL_CODE or _NO_MODEL.search(error.message)
    return 404 if is_refusal and is_unknown_model else status


def is_unknown_address(error: ParsedError) -> bool:
    """Return True if an error with the status 404 is about the URL rather than the model."""
    return error.code != _NO_MODEL_CODE and bool(_UNKNOWN_ADDRESS.fullmatch(error.message.strip()))


def refuses_tools(message: str) -> bool:
    """Return True if the model, or its server as it was started, does not support tools at all."""
    return bool(_NO_TOOLS.search(message))


def refuses_media(message: str) -> bool:
    """Return True if the model does not accept pictures, sounds or files."""
    return bool(_NO_MEDIA.search(message))


def is_error(answer: Any) -> bool:
    """Return True if JSON sent with a success status, or an event of a stream, is an error."""
    if isinstance(answer, list):
        return bool(answer) and is_error(answer[0])
    return isinstance(answer, dict) and bool(answer.get("error") or answer.get("object") == "error")


def _decoded(body: Any) -> Any:
    if not isinstance(body, bytes | str):
        return body
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace") if isinstance(body, bytes) else body


def _read(body: Any, depth: int = 0) -> ParsedError:
    if isinstance(body, list):
        return _read(body[0], depth) if body and depth < 3 else ParsedError()
    if isinstance(body, str):
        return ParsedError(message=body)
    if not isinstance(body, dict):
        return ParsedError()
    error = body.get("error") or body.get("errors")
    if isinstance(error, list) and depth < 3:
        return _read(error, depth + 1)
    if isinstance(error, dict):
        return _of_object(error, depth)
    if isinstance(error, str) and error:
        return replace(_of_object(body, depth), message=error)
    return _of_object(body, depth)


def _of_object(error: dict[str, Any], depth: int) -> ParsedError:
    """Parse an error object. Its message may be a string, a list of details, or a quoted error of another server."""
    message, param = error.get("message"), error.get("param")
    details = message.get("detail") or message.get("error") if isinstance(message, dict) else error.get("detail")
    if isinstance(details, dict):
        details = details.get("error") or details.get("message")
    if isinstance(details, list):
        message, param = _of_details(details, param)
    elif isinstance(details, str):
        message = details
    code, status = _code(error.get("code"))
    parsed = ParsedError(
        message=message if isinstance(message, str) else "",
        code=_inner_code(error) or code or _TYPE_CODES.get(str(error.get("type")), ""),
        param=param if isinstance(param, str) and _PARAM.fullmatch(param) else None,
        status=status,
        retry_after=next((delay.removesuffix("s") for delay in _retry_delays(error)), ""),
    )
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if raw and depth < 2:
        cause = _read(_decoded(raw), depth + 1)
        return replace(
            parsed,
            message=cause.message or parsed.message,
            code=cause.code or parsed.code,
            param=cause.param or parsed.param,
        )
    return parsed


def _of_details(details: list[Any], param: Any) -> tuple[str, Any]:
    """Return the message and the parameter of a list of `{loc, msg}`."""
    messages, first_path = [], ""
    for detail in details:
        if isinstance(detail, dict):
            loc = detail["loc"] if isinstance(detail.get("loc"), list) else []
            path = ".".join(str(part) for part in loc if part != "body")
            messages.append(f"{path}: {detail.get('msg')}" if path else str(detail.get("msg")))
            first_path = first_path or path
    return "; ".join(messages), param or first_path or None


def _code(given: Any) -> tuple[str, int]:
    """Return the code and the status in a `code` field. A number that is an HTTP status is not a code."""
    if isinstance(given, bool):
        return "", 0
    if isinstance(given, int):
        return ("", given) if 100 <= given < 600 else (str(given)[:64], 0)
    if isinstance(given, str) and _CODE.fullmatch(given):
        status = int(given) if given.isdecimal() and len(given) == 3 else 0
        return ("", status) if 100 <= status < 600 else (given, 0)
    return "", 0


def _retry_delays(error: dict[str, Any]) -> Iterator[str]:
    details = error.get("details")
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict) and isinstance(detail.get("retryDelay"), str):
            yield detail["retryDelay"]


def _inner_code(error: dict[str, Any]) -> str:
    inner, metadata = error.get("innererror"), error.get("metadata")
    if isinstance(metadata, dict) and "flagged_input" in metadata:  # OpenRouter
        return "content_filter"
    codes = (error.get("code"), inner.get("code") if isinstance(inner, dict) else None)
    return "content_filter" if any(isinstance(code, str) and code in _FILTERED for code in codes) else ""


def _redacted(message: str, secrets: Iterable[str]) -> str:
    message = message[:_MAX_REDACTED_CHARS]
    for secret in secrets:
        if len(secret) > 3:
            message = message.replace(secret, _HIDDEN)
    message = _KEY.sub(_HIDDEN, _ADDRESS.sub(_HIDDEN, message))
    return storable_text(" ".join(message.split()))[:_MAX_MESSAGE_CHARS]
