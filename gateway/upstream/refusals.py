"""Reads from a server's refusal which parameter it refuses, and how to change the request: the parameter is dropped,
renamed, or set to the value that the server asks for. Changes that would alter the meaning of the answer are not made;
such a refusal is passed on. docs/upstreams.md has the sources of the wordings."""

import json
import re
from collections.abc import Container, Iterator
from typing import Any

from gateway.errors import RequestRefused
from gateway.upstream.changes import STREAMED, Body, Change, Condition, Kind
from gateway.upstream.paths import found_at

MOST_CHANGES = 8  # of one refusal
_LONGEST_PHRASE = 1000  # of a request; servers' own phrases are shorter
_STATUSES = frozenset({400, 422})
_FINAL_CODES = frozenset({"context_length_exceeded", "content_filter"})

# Limits of answers are renamed and never dropped: without a limit an answer may cost too much.
_LIMITS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_ALL_LIMITS = frozenset({*_LIMITS, "max_output_tokens", "max_new_tokens"})
_HOLDERS = frozenset(
    {"model", "messages", "tools", "stream", "prompt", "input"}
)  # named in many refusals that have another reason
_MEANING = frozenset(
    {
        "tool_choice", "functions", "function_call", "response_format", "stop", "stop_sequences", "stop_token_ids", "n",
        "best_of", "logprobs", "top_logprobs", "logit_bias", "modalities", "audio", "web_search_options", "grammar",
        "suffix", "echo", "dimensions", "encoding_format",
        "json_schema", "guided_json", "guided_regex", "guided_choice", "guided_grammar", "structured_outputs",
    }
)  # fmt: skip
# Fields of messages and tools that carry content; all others may be dropped.
_CARRIERS: dict[tuple[str, ...], frozenset[str]] = {
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
_CIRCUMSTANCE = re.compile(r"\b(?:with|when|while|if|unless|because)\b(?:[^.;]|\.(?=\w))*", re.IGNORECASE)
_OTHER_NAME = re.compile(r"\buse\s+['\"`]?([a-z]\w*)['\"`]?\s+instead", re.IGNORECASE)
_PLACE = re.compile(rf"(?:^|; )({_NAME}): ")  # the form in which read_error puts a list of details
_VALUE = r"(?:['\"`](?P<word>[A-Za-z0-9_-]{1,32})['\"`]|(?P<literal>true|false|none|-?\d+(?:\.\d+)?)\b)"
_ALONE = r"(?!\.\d|\s*(?:,|or\b|\())"  # one value, not the first of several
_MUST_BE = r"(?:must|should|may only|can only|has to|needs to)\s+be"
_SETS = (
    re.compile(rf"\bset\s+(?:the\s+)?(?:parameter\s+)?['\"`]?(?P<name>{_NAME})['\"`]?\s+to\s+{_VALUE}{_ALONE}", re.I),
    re.compile(rf"(?P<name>{_NAME})['\"`]?\s+{_MUST_BE}\s+set\s+to\s+{_VALUE}{_ALONE}", re.IGNORECASE),
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
# A reasoning effort is a wish, so any of these values may be dropped. Ollama refuses it without naming it.
_EFFORT = "reasoning_effort"
_EFFORTS = frozenset({"none", "minimal", "low", "medium", "high", "xhigh", "max"})
_NO_THINKING = re.compile(r"n[o']t support (?:thinking|reasoning)\b|^think value\b", re.IGNORECASE)
_NOT_THE_VALUE = re.compile(
    r"input should be|invalid value|must be one of|expected one of|unknown variant", re.IGNORECASE
)
_IDENTIFIERS = frozenset({"user", "safety_identifier", "prompt_cache_key"})  # whose values name somebody
_HIDDEN = "…"
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
_WRAPPERS = frozenset({"body", "parameter", "parameters", "request"})

Path = tuple[str, ...]


def changes_for(
    refusal: RequestRefused, body: Body, *, fixed: Container[str] = (), tried: Container[Change] = ()
) -> list[Change]:
    """Return the changes that answer a refusal of this body; none if it is to be passed on. `fixed` are parameters that
    an administrator set, which are not changed. Changes in `tried` are not tried again."""
    if refusal.details.get("status") not in _STATUSES or refusal.upstream_code in _FINAL_CODES:
        return []
    said = _without_phrases(refusal.said, body)
    if not body.get("stream") and STREAMED not in tried and _STREAMS_ONLY.search(said):
        return [STREAMED]
    wanted = _wanted_value(said, body)
    if wanted is not None and wanted not in tried:
        return [] if wanted.parameter in fixed else [wanted]
    if (effort := _refused_effort(said, refusal.param or "", body)) is not None:
        return [] if _EFFORT in fixed or effort in tried else [effort]
    if not _REFUSES.search(said) and not refusal.upstream_code.startswith(("unsupported_", "unknown_")):
        return []
    paths = list(dict.fromkeys(_refused(said, refusal.param or "", _Fields(body))))
    if any(path[0] in _MEANING for path in paths):
        return []
    about_value = refusal.upstream_code == "unsupported_value" or bool(_ONE_VALUE.search(said))
    found = (_answer(path, said, body, about_value=about_value) for path in paths if path[0] not in fixed)
    return [change for change in found if change is not None and change not in tried][:MOST_CHANGES]


def _without_phrases(said: str, body: Body) -> str:
    """Return a server's words without phrases that it quotes from the request: learned changes apply to everybody, so
    no request may choose their words."""
    sent = {name: value for name, value in body.items() if name not in _HOLDERS}
    for text in _texts(sent):
        if len(text) <= _LONGEST_PHRASE and len(text.split()) > 1:
            said = said.replace(" ".join(text.split()), _HIDDEN)
    return said


def _texts(value: Any) -> Iterator[str]:
    """Yield every text within a JSON value, including names."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _wanted_value(said: str, body: Body) -> Change | None:
    """Return the change for a refusal that asks for another value."""
    for pattern in _SETS:
        for match in pattern.finditer(said):
            name = match["name"].rpartition(".")[2] if match["name"].partition(".")[0] in _WRAPPERS else match["name"]
            literal = (match["literal"] or "").lower()
            value = json.loads(literal) if literal not in {"", "none"} else match["word"] or "none"
            if not _OWN_NAME.fullmatch(name) or name in _MEANING | _HOLDERS | _ALL_LIMITS or body.get(name) == value:
                continue
            return Change(Kind.SET, name, value, _condition(said, name, body))
    return None


def _refused_effort(said: str, param: str, body: Body) -> Change | None:
    """Return the change for a known reasoning effort that this server does not support."""
    value = body.get(_EFFORT)
    if not isinstance(value, str) or value not in _EFFORTS:
        return None
    if not _NOT_THE_VALUE.search(said) or _EFFORT not in f"{param} {said}":
        return None
    return Change(Kind.DROP, _EFFORT, value, Condition.VALUE)


class _Fields:
    """The field names of a request by their place, gathered once, since a request may have very many messages."""

    def __init__(self, body: Body) -> None:
        self._body = body
        self._names = {
            prefix: {name for holder in found_at(body, prefix) if isinstance(holder, dict) for name in holder}
            for prefix in (*_CARRIERS, _PART_FIELD[:-1])
        }

    def __contains__(self, path: Path) -> bool:
        if len(path) > 1 and path[0] in {"messages", "tools"}:
            return path[-1] in self._names.get(path[:-1], ())
        return next(found_at(self._body, path), None) is not None


def _refused(said: str, param: str, fields: _Fields) -> Iterator[Path]:
    """Yield the paths of the request that a refusal is about."""
    said = _SUGGESTION.sub("", said)
    if _NO_THINKING.search(said) and (_EFFORT,) in fields:
        yield (_EFFORT,)
        return
    named = _path(param, fields, said)
    if named is not None and named not in {("messages",), ("tools",)}:
        yield named
        for match in _PLACE.finditer(said):
            if (path := _path(match[1], fields, said)) is not None:
                yield path
        return
    phrase = _REFUSES.search(said)
    if phrase is not None:
        said = said[: phrase.end()] + _CIRCUMSTANCE.sub("", said[phrase.end() :])
    for match in _TOKEN.finditer(said):
        name = match["name"]
        telling = match["quote"] or re.search(r"[_.\[]|[a-z][A-Z]", name)
        before, after = said[: match.start()], said[match.end() :]
        if not telling and not _NAMED_BEFORE.search(before) and not _NAMED_AFTER.match(after):
            continue
        if (path := _path(name, fields, said)) is not None and path not in _CARRIERS:
            yield path


def _path(name: str, fields: _Fields, said: str) -> Path | None:
    """Return the path in the request for the server's name of a parameter: as it is, in camelCase, or within messages
    or tools if the refusal speaks of them."""
    parts = [part for part in re.split(r"[.\[\]]+", name) if part and not part.isdecimal()]
    if len(parts) > 1 and parts[0] in _WRAPPERS and (parts[0],) not in fields:
        del parts[0]
    if len(parts) > 2 and parts[0] == "messages" and parts[1] in _ROLES:
        del parts[1]
    if not parts:
        return None
    snake = [re.sub(r"(?<=[a-z])([A-Z])", r"_\1", part).lower() for part in parts]
    for path in (tuple(parts), tuple(snake)):
        inside = [prefix for prefix in _CARRIERS if len(path) == 1 and re.search(rf"\b{prefix[0]}\b", said)]
        for whole in (*((*prefix, *path) for prefix in inside), path):
            if whole in fields:
                return whole
    return None


def _answer(path: Path, said: str, body: Body, *, about_value: bool) -> Change | None:
    name = ".".join(path)
    if len(path) == 1 and (other := _other_name(name, said, body)):
        return Change(Kind.RENAME, name, other)
    if not _may_drop(path, body):
        return None
    if len(path) > 1:
        return Change(Kind.DROP, name)
    if about_value and not _FIXED_VALUE.search(said):
        value = body[name]
        plain = isinstance(value, bool | int | float) or (isinstance(value, str) and _PLAIN_VALUE.fullmatch(value))
        if not plain or name in _IDENTIFIERS:
            return Change(Kind.DROP, name, condition=Condition.ONCE)
        return Change(Kind.DROP, name, value, Condition.VALUE)
    return Change(Kind.DROP, name, condition=_condition(said, name, body))


def _other_name(name: str, said: str, body: Body) -> str:
    """Return the name that the server wants for a parameter; "" if it gives none. Another name means the same only if
    one of the two contains all words of the other, as seed and random_seed."""
    match = _OTHER_NAME.search(said)
    other = match[1] if match else _LIMITS.get(name, "")
    one, two = set(name.split("_")), set(other.split("_"))
    usable = other not in body and other not in _MEANING | _HOLDERS and (one <= two or two <= one)
    return other if usable and not isinstance(body[name], dict | list) else ""


def _may_drop(path: Path, body: Body) -> bool:
    if path[0] in {"messages", "tools"}:
        carriers = _CARRIERS.get(path[:-1])
        return path == _PART_FIELD or (carriers is not None and path[-1] not in carriers)
    if path[0] in _ALL_LIMITS:
        return path[0] in _LIMITS and _LIMITS[path[0]] in body  # the other parameter has the same meaning
    # A client may rely on getting one call at a time.
    return path[0] not in _HOLDERS and not (path[0] == "parallel_tool_calls" and body[path[0]] is False)


def _condition(said: str, name: str, body: Body) -> Condition:
    """Return the requests that a change applies to. If another parameter of the request is the reason, it is this
    request only, since others may not have that parameter."""
    reasons = " ".join(match[0] for match in _CIRCUMSTANCE.finditer(said)).lower()
    words = set(re.split(r"[\W_]+", reasons))
    if any(words & set(other.split("_")) for other in body if other not in _HOLDERS | {name}):
        return Condition.ONCE
    if body.get("tools") and _WITH_TOOLS.search(said):
        return Condition.TOOLS
    if not body.get("stream") and _NOT_STREAMED.search(said):
        return Condition.WHOLE
    return Condition.ALWAYS
