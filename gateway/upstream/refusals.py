"""Derives from a server's refusal how to change the request: drop the refused parameter, rename it, or set it to the
value that the server asks for. A change that would alter the meaning of the answer is never made; such a refusal is
passed on to the client. docs/upstreams.md has the sources of the wordings."""

import json
import re
from collections.abc import Container, Iterator

from gateway.errors import RequestRefused
from gateway.upstream.changes import STREAMED, Body, Change, Condition, Kind
from gateway.upstream.paths import found_at, texts_in

MAX_CHANGES = 8  # per refusal
_MAX_QUOTE_CHARS = 1000  # servers quote less of a request than that
_STATUSES = frozenset({400, 422})
_FINAL_CODES = frozenset({"context_length_exceeded", "content_filter"})

# Token limits are renamed but never dropped: an unlimited answer may cost too much.
_LIMITS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_ALL_LIMITS = frozenset({*_LIMITS, "max_output_tokens", "max_new_tokens"})
# Never dropped or set. Many refusals mention these although they are about something else.
_ESSENTIAL = frozenset({"model", "messages", "tools", "stream", "prompt", "input"})
# Parameters that determine what the answer means.
_MEANING = frozenset(
    {
        "tool_choice", "functions", "function_call", "response_format", "stop", "stop_sequences", "stop_token_ids", "n",
        "best_of", "logprobs", "top_logprobs", "logit_bias", "modalities", "audio", "web_search_options", "grammar",
        "suffix", "echo", "dimensions", "encoding_format",
        "json_schema", "guided_json", "guided_regex", "guided_choice", "guided_grammar", "structured_outputs",
    }
)  # fmt: skip
# Fields of messages and tools that carry content. All other fields in these places may be dropped.
_CONTENT_FIELDS: dict[tuple[str, ...], frozenset[str]] = {
    ("messages",): frozenset(
        {"role", "content", "tool_calls", "tool_call_id", "function_call", "prefix", "partial", "audio"}
    ),
    ("messages", "tool_calls"): frozenset({"id", "type", "function"}),
    ("tools",): frozenset({"type", "function"}),
    ("tools", "function"): frozenset({"name", "description", "parameters"}),
}
_PART_FIELD = ("messages", "content", "cache_control")

_REFUSES = re.compile(
    r"unsupported|not supported|n[o']t support|unknown|unrecogni[sz]ed|unexpected|not (?:permitted|allowed|accepted)|"
    r"cannot find field|extra (?:inputs|fields)|additional propert|deprecated|no longer|not available|"
    r"only \S+(?: \S+){0,3} (?:is|are) (?:allowed|supported)",
    re.IGNORECASE,
)
_NAME = r"[A-Za-z_]\w*(?:\.?\[\d+\]|\.\w+)*"
_TOKEN = re.compile(rf"(?P<quote>['\"`‘“]?)(?P<name>{_NAME})")
_NAMED_BEFORE = re.compile(r"(?:\b(?:parameter|argument|field|property|name|key|invalid)\s+\[?|:\s*)$", re.IGNORECASE)
_NAMED_AFTER = re.compile(
    r"[`'\"’”]?:?\s*(?:is |are |was )?"
    r"(?:not (?:supported|available)|un(?:supported|known|expected)|deprecated|no longer|extra )",
    re.IGNORECASE,
)
_SUGGESTION = re.compile(r"did you mean.*|(?:please )?use\s+\S+\s+instead.*", re.IGNORECASE | re.DOTALL)
_CONDITION_CLAUSE = re.compile(r"\b(?:with|when|while|if|unless|because)\b(?:[^.;]|\.(?=\w))*", re.IGNORECASE)
_OTHER_NAME = re.compile(r"\buse\s+['\"`]?([a-z]\w*)['\"`]?\s+instead", re.IGNORECASE)
_DETAIL_NAME = re.compile(rf"(?:^|; )({_NAME}): ")  # read_error writes a list of details in this form
_VALUE = r"(?:['\"`](?P<word>[A-Za-z0-9_-]{1,32})['\"`]|(?P<literal>true|false|none|-?\d+(?:\.\d+)?)\b)"
_SINGLE = r"(?!\.\d|\s*(?:,|or\b|\())"  # not the first of several values
_MUST_BE = r"(?:must|should|may only|can only|has to|needs to)\s+be"
_SETS = (
    re.compile(rf"\bset\s+(?:the\s+)?(?:parameter\s+)?['\"`]?(?P<name>{_NAME})['\"`]?\s+to\s+{_VALUE}{_SINGLE}", re.I),
    re.compile(rf"(?P<name>{_NAME})['\"`]?\s+{_MUST_BE}\s+set\s+to\s+{_VALUE}{_SINGLE}", re.IGNORECASE),
)
_OWN_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_WITH_TOOLS = re.compile(r"\btools?\b|\bfunction call", re.IGNORECASE)
_NOT_STREAMED = re.compile(r"\bnon-?stream|\bstream\s*=\s*`?false", re.IGNORECASE)
_STREAMS_ONLY = re.compile(
    r"\bonly (?:support|allow|accept|work)\w* (?:in |with |for |the )*stream|for non-?stream|"
    r"\bstream\b['\"`]? must be (?:set to )?true|\bstream(?:ing)?(?: mode)? is required|"
    r"\bnon-?stream\w*(?: \w+){0,2} (?:is|are) (?:not|un)|n[o']t support non-?stream",
    re.IGNORECASE,
)
_ONE_VALUE = re.compile(r"unsupported value|not support ['\"`]?[\w.…-]+['\"`]? with|^think value", re.IGNORECASE)
_FIXED_VALUE = re.compile(r"only the default|only \S+ is (?:allowed|supported)", re.IGNORECASE)
_PLAIN_VALUE = re.compile(r"[a-z0-9_.-]{1,32}")
# The reasoning effort is only a hint, so these values may be dropped. Ollama refuses it without naming it.
_EFFORT = "reasoning_effort"
_EFFORTS = frozenset({"none", "minimal", "low", "medium", "high", "xhigh", "max"})
_NO_THINKING = re.compile(r"n[o']t support (?:thinking|reasoning)\b|^think value\b", re.IGNORECASE)
_NOT_THE_VALUE = re.compile(
    r"input should be|invalid value|must be one of|expected one of|unknown variant", re.IGNORECASE
)
_IDENTIFIERS = frozenset({"user", "safety_identifier", "prompt_cache_key"})  # their values identify a person
_HIDDEN = "…"
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
_WRAPPERS = frozenset({"body", "parameter", "parameters", "request"})

Path = tuple[str, ...]


def changes_for(
    refusal: RequestRefused, body: Body, *, fixed: Container[str] = (), tried: Container[Change] = ()
) -> list[Change]:
    """Return the changes to make after this body was refused; none if the refusal should be passed on. `fixed` are
    parameters that an administrator set, which are not changed. Changes in `tried` are not proposed again."""
    if refusal.details.get("status") not in _STATUSES or refusal.upstream_code in _FINAL_CODES:
        return []
    message = _without_quotes(refusal.server_message, body)
    if not body.get("stream") and STREAMED not in tried and _STREAMS_ONLY.search(message):
        return [STREAMED]
    wanted = _wanted_value(message, body)
    if wanted is not None and wanted not in tried:
        return [] if wanted.parameter in fixed else [wanted]
    if (effort := _refused_effort(message, refusal.param or "", body)) is not None:
        return [] if _EFFORT in fixed or effort in tried else [effort]
    if not _REFUSES.search(message) and not refusal.upstream_code.startswith(("unsupported_", "unknown_")):
        return []
    paths = list(dict.fromkeys(_refused_paths(message, refusal.param or "", _FieldNames(body))))
    if any(path[0] in _MEANING for path in paths):
        return []
    about_value = refusal.upstream_code == "unsupported_value" or bool(_ONE_VALUE.search(message))
    changes = (_change_for(path, message, body, about_value=about_value) for path in paths if path[0] not in fixed)
    return [change for change in changes if change is not None and change not in tried][:MAX_CHANGES]


def _without_quotes(message: str, body: Body) -> str:
    """Remove phrases that the server quotes from the request. Learned changes apply to every client, so no client may
    choose their words."""
    sent = {name: value for name, value in body.items() if name not in _ESSENTIAL}
    for text in texts_in(sent):
        if len(text) <= _MAX_QUOTE_CHARS and len(text.split()) > 1:
            message = message.replace(" ".join(text.split()), _HIDDEN)
    return message


def _wanted_value(message: str, body: Body) -> Change | None:
    """Return the change for a refusal that demands a particular value."""
    for pattern in _SETS:
        for match in pattern.finditer(message):
            name = match["name"].rpartition(".")[2] if match["name"].partition(".")[0] in _WRAPPERS else match["name"]
            literal = (match["literal"] or "").lower()
            value = json.loads(literal) if literal not in {"", "none"} else match["word"] or "none"
            if not _OWN_NAME.fullmatch(name) or name in _MEANING | _ESSENTIAL | _ALL_LIMITS or body.get(name) == value:
                continue
            return Change(Kind.SET, name, value, _condition(message, name, body))
    return None


def _refused_effort(message: str, param: str, body: Body) -> Change | None:
    """Return the change if the server does not support the requested reasoning effort."""
    value = body.get(_EFFORT)
    if not isinstance(value, str) or value not in _EFFORTS:
        return None
    if not _NOT_THE_VALUE.search(message) or _EFFORT not in f"{param} {message}":
        return None
    return Change(Kind.DROP, _EFFORT, value, Condition.VALUE)


class _FieldNames:
    """The field names of a request by path, collected once since a request may have very many messages."""

    def __init__(self, body: Body) -> None:
        self._body = body
        self._names = {
            prefix: {name for holder in found_at(body, prefix) if isinstance(holder, dict) for name in holder}
            for prefix in (*_CONTENT_FIELDS, _PART_FIELD[:-1])
        }

    def __contains__(self, path: Path) -> bool:
        if len(path) > 1 and path[0] in {"messages", "tools"}:
            return path[-1] in self._names.get(path[:-1], ())
        return next(found_at(self._body, path), None) is not None


def _refused_paths(message: str, param: str, fields: _FieldNames) -> Iterator[Path]:
    """Yield the paths in the request that a refusal is about."""
    message = _SUGGESTION.sub("", message)
    if _NO_THINKING.search(message) and (_EFFORT,) in fields:
        yield (_EFFORT,)
        return
    named = _path(param, fields, message)
    if named is not None and named not in {("messages",), ("tools",)}:
        yield named
        for match in _DETAIL_NAME.finditer(message):
            if (path := _path(match[1], fields, message)) is not None:
                yield path
        return
    phrase = _REFUSES.search(message)
    if phrase is not None:
        message = message[: phrase.end()] + _CONDITION_CLAUSE.sub("", message[phrase.end() :])
    for match in _TOKEN.finditer(message):
        name = match["name"]
        is_identifier = match["quote"] or re.search(r"[_.\[]|[a-z][A-Z]", name)
        before, after = message[: match.start()], message[match.end() :]
        if not is_identifier and not _NAMED_BEFORE.search(before) and not _NAMED_AFTER.match(after):
            continue
        if (path := _path(name, fields, message)) is not None and path not in _CONTENT_FIELDS:
            yield path


def _path(name: str, fields: _FieldNames, message: str) -> Path | None:
    """Return the path in the request for a parameter name in a refusal, which may be in camelCase, or relative to
    messages or tools if the refusal mentions these."""
    parts = [part for part in re.split(r"[.\[\]]+", name) if part and not part.isdecimal()]
    if len(parts) > 1 and parts[0] in _WRAPPERS and (parts[0],) not in fields:
        del parts[0]
    if len(parts) > 2 and parts[0] == "messages" and parts[1] in _ROLES:
        del parts[1]
    if not parts:
        return None
    snake = [re.sub(r"(?<=[a-z])([A-Z])", r"_\1", part).lower() for part in parts]
    for path in (tuple(parts), tuple(snake)):
        prefixes = [prefix for prefix in _CONTENT_FIELDS if len(path) == 1 and re.search(rf"\b{prefix[0]}\b", message)]
        for whole in (*((*prefix, *path) for prefix in prefixes), path):
            if whole in fields:
                return whole
    return None


def _change_for(path: Path, message: str, body: Body, *, about_value: bool) -> Change | None:
    name = ".".join(path)
    if len(path) == 1 and (other := _other_name(name, message, body)):
        return Change(Kind.RENAME, name, other)
    if not _may_drop(path, body):
        return None
    if len(path) > 1:
        return Change(Kind.DROP, name)
    if about_value and not _FIXED_VALUE.search(message):
        value = body[name]
        plain = isinstance(value, bool | int | float) or (isinstance(value, str) and _PLAIN_VALUE.fullmatch(value))
        if not plain or name in _IDENTIFIERS:
            return Change(Kind.DROP, name, condition=Condition.ONCE)
        return Change(Kind.DROP, name, value, Condition.VALUE)
    return Change(Kind.DROP, name, condition=_condition(message, name, body))


def _other_name(name: str, message: str, body: Body) -> str:
    """Return the server's name for a parameter; "" if it gives none. Two names are taken to mean the same if one has
    all words of the other, like seed and random_seed."""
    match = _OTHER_NAME.search(message)
    other = match[1] if match else _LIMITS.get(name, "")
    words, other_words = set(name.split("_")), set(other.split("_"))
    same_meaning = words <= other_words or other_words <= words
    usable = other not in body and other not in _MEANING | _ESSENTIAL and same_meaning
    return other if usable and not isinstance(body[name], dict | list) else ""


def _may_drop(path: Path, body: Body) -> bool:
    if path[0] in {"messages", "tools"}:
        content_fields = _CONTENT_FIELDS.get(path[:-1])
        return path == _PART_FIELD or (content_fields is not None and path[-1] not in content_fields)
    if path[0] in _ALL_LIMITS:
        return path[0] in _LIMITS and _LIMITS[path[0]] in body  # the other parameter has the same meaning
    # A client may rely on getting one call at a time.
    return path[0] not in _ESSENTIAL and not (path[0] == "parallel_tool_calls" and body[path[0]] is False)


def _condition(message: str, name: str, body: Body) -> Condition:
    """Return the requests that a change applies to. If the refusal gives another parameter of the request as the
    reason, the change is for this request only, since others may not have that parameter."""
    reasons = " ".join(match[0] for match in _CONDITION_CLAUSE.finditer(message)).lower()
    words = set(re.split(r"[\W_]+", reasons))
    if any(words & set(other.split("_")) for other in body if other not in _ESSENTIAL | {name}):
        return Condition.ONCE
    if body.get("tools") and _WITH_TOOLS.search(message):
        return Condition.TOOLS
    if not body.get("stream") and _NOT_STREAMED.search(message):
        return Condition.WHOLE
    return Condition.ALWAYS
