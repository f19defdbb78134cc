"""JSON Schemas of the requests and answers of /v1, for its OpenAPI document. Other fields are passed through. The
limits come from memories/limits.py and are enforced where a body is parsed."""

from typing import Any

from django.conf import settings

from gateway.api.documented import described, header_parameter, whole
from gateway.runs.by_id import MAX_EXTERNAL_ID
from memories.limits import INPUTS, MESSAGES, SHORT_LENGTH, TOOLS

Json = dict[str, Any]


def _object(required: tuple[str, ...], **properties: Json) -> Json:
    return {"type": "object", "required": list(required), "properties": properties}


def _list(items: Json, **more: Any) -> Json:
    return {"type": "array", "items": items, **more}


_TEXT: Json = {"type": "string"}
_NUMBER: Json = {"type": "integer"}
_ANY_OBJECT: Json = {"type": "object"}
_TEXT_OR_NOTHING: Json = {"type": ["string", "null"]}
_OBJECT_OR_NOTHING: Json = {"type": ["object", "null"]}
_USAGE: Json = {"type": ["object", "null"], "description": "Tokens, as the model server counts them."}
_STREAM: Json = {"type": "boolean", "description": "Answer with server-sent events."}
_STREAM_OPTIONS = _object((), include_usage={"type": "boolean"})
_AGENT: Json = {"type": "string", "minLength": 1, "maxLength": SHORT_LENGTH, "description": "The name of an agent."}
_HEADERS = (
    header_parameter("X-Daybook-Session", "The session.", maxLength=MAX_EXTERNAL_ID),
    header_parameter("X-Daybook-User", "The end user, with a trusted key.", maxLength=SHORT_LENGTH),
)

_MODEL = whole(
    id=_TEXT,
    object={"const": "model"},
    created=_NUMBER,
    owned_by=_TEXT,
    type={"const": "model"},
    display_name=_TEXT,
    created_at={"type": "string", "format": "date-time"},
)
_IDS = {"first_id": _TEXT_OR_NOTHING, "last_id": _TEXT_OR_NOTHING}
MODELS = described(answer=whole(object={"const": "list"}, data=_list(_MODEL), has_more={"const": False}, **_IDS))
MODEL = described(answer=_MODEL)

_LIMITED = {"description": f"A user's text has at most {settings.DAYBOOK_MAX_MESSAGE} characters."}
_ROLE: Json = {"enum": ["system", "developer", "user", "assistant", "tool", "function"]}
_MESSAGE = _object(("role",), role=_ROLE, content={"anyOf": [_TEXT, _list(_ANY_OBJECT), {"type": "null"}], **_LIMITED})
_CHAT_REQUEST = _object(
    ("model", "messages"),
    model=_AGENT,
    messages=_list(_MESSAGE, minItems=1, maxItems=MESSAGES),
    tools=_list(_object((), type=_TEXT, function=_object((), name=_TEXT)), maxItems=TOOLS),
    stream=_STREAM,
    stream_options=_STREAM_OPTIONS,
    metadata=_object(
        (),
        session_id={**_TEXT, "maxLength": MAX_EXTERNAL_ID, "description": "The session, if no header names it."},
        temporary={"type": "string", "description": "`true`: memory is neither read nor written."},
    ),
)
_ANSWER_MESSAGE = _object(("role", "content"), role={"const": "assistant"}, content={}, tool_calls=_list(_ANY_OBJECT))
_CHAT_CHOICE = _object(("index", "message"), index=_NUMBER, message=_ANSWER_MESSAGE, finish_reason=_TEXT_OR_NOTHING)
_CHAT_ANSWER = _object(
    ("id", "object", "created", "model", "choices"),
    id=_TEXT,
    object={"const": "chat.completion"},
    created=_NUMBER,
    model=_AGENT,
    choices=_list(_CHAT_CHOICE),
    usage=_USAGE,
)


def _with_choices(kind: str, choice: Json) -> Json:
    choices = _list(choice)
    return _object(("object", "choices"), id=_TEXT, object={"const": kind}, model=_AGENT, choices=choices, usage=_USAGE)


_CHAT_CHUNK = _with_choices(
    "chat.completion.chunk",
    _object(("index", "delta"), index=_NUMBER, delta=_ANY_OBJECT, finish_reason=_TEXT_OR_NOTHING),
)
CHAT_COMPLETIONS = described(body=_CHAT_REQUEST, answer=_CHAT_ANSWER, event=_CHAT_CHUNK, parameters=_HEADERS)

_TOKENS = _list(_NUMBER)
_TEXTS: Json = {"anyOf": [_TEXT, _list(_TEXT, maxItems=INPUTS), _TOKENS, _list(_TOKENS, maxItems=INPUTS)]}
_COMPLETION = _with_choices(
    "text_completion", _object(("text",), index=_NUMBER, text=_TEXT, finish_reason=_TEXT_OR_NOTHING)
)
COMPLETIONS = described(
    body=_object(
        ("model",),
        model=_AGENT,
        prompt=_TEXTS,
        suffix={"type": ["string", "null"], "description": "The text after the completion."},
        stream=_STREAM,
        stream_options=_STREAM_OPTIONS,
    ),
    answer=_COMPLETION,
    event=_COMPLETION,
)

_EMBEDDING_MODEL = "An agent, for the configured embedding model on its upstream, or `upstream/model`."
EMBEDDINGS = described(
    body=_object(("model", "input"), model={**_AGENT, "description": _EMBEDDING_MODEL}, input=_TEXTS),
    answer=_object(("data",), data=_list(_object(("embedding",), index=_NUMBER)), model=_TEXT, usage=_USAGE),
)

_ITEMS = _list(_ANY_OBJECT, maxItems=MESSAGES, description="Messages, tool calls and their outputs, reasoning.")
_RESPONSE = _object(
    ("id", "object", "status", "output"),
    id=_TEXT,
    object={"const": "response"},
    status={"enum": ["in_progress", "completed", "incomplete", "failed", "cancelled"]},
    output=_list(_ANY_OBJECT),
    usage=_USAGE,
)
_RESPONSES_REQUEST = _object(
    ("model", "input"),
    model=_AGENT,
    input={"anyOf": [_TEXT, _ITEMS], **_LIMITED},
    instructions=_TEXT_OR_NOTHING,
    previous_response_id={
        "type": ["string", "null"],
        "maxLength": SHORT_LENGTH,
        "description": "The response that this one continues.",
    },
    tools=_list(_ANY_OBJECT, maxItems=TOOLS),
    store={"type": ["boolean", "null"], "description": "Whether the response can be read again. The default is true."},
    stream={"type": ["boolean", "null"]},
    reasoning=_OBJECT_OR_NOTHING,
    text=_OBJECT_OR_NOTHING,
    truncation={"enum": ["auto", "disabled", None]},
)
RESPONSES = described(
    body=_RESPONSES_REQUEST, answer=_RESPONSE, event=whole(type=_TEXT, sequence_number=_NUMBER), parameters=_HEADERS
)
RESPONSE = described(answer=_RESPONSE)
INPUT_TOKENS = described(
    body=_RESPONSES_REQUEST, answer=whole(object={"const": "response.input_tokens"}, input_tokens=_NUMBER)
)
RESPONSE_DELETED = described(answer=whole(id=_TEXT, deleted={"const": True}))
INPUT_ITEMS = described(answer=whole(object={"const": "list"}, data=_list(_ANY_OBJECT)))

_ANTHROPIC_ERROR = _object(
    ("type", "error"), type={"const": "error"}, error=whole(type=_TEXT, message=_TEXT), request_id=_TEXT
)
_MESSAGES_REQUEST = _object(
    ("model", "messages"),
    model=_AGENT,
    messages=_list(
        whole(role={"enum": ["user", "assistant"]}, content={"anyOf": [_TEXT, _list(whole(type=_TEXT))], **_LIMITED}),
        minItems=1,
        maxItems=MESSAGES,
    ),
    system={"anyOf": [_TEXT, _list(whole(type=_TEXT))]},
    max_tokens={"type": "integer", "minimum": 1},
    stop_sequences=_list(_TEXT),
    tools=_list(_ANY_OBJECT, maxItems=TOOLS),
    tool_choice=_object(("type",), type={"enum": ["auto", "any", "tool", "none"]}, name=_TEXT),
    stream=_STREAM,
)
ANTHROPIC_MESSAGES = described(
    body=_MESSAGES_REQUEST,
    answer=whole(
        id=_TEXT,
        type={"const": "message"},
        role={"const": "assistant"},
        content=_list(whole(type=_TEXT)),
        stop_reason=_TEXT_OR_NOTHING,
        usage=_ANY_OBJECT,
    ),
    event=whole(type=_TEXT),
    error=_ANTHROPIC_ERROR,
)
COUNT_TOKENS = described(body=_MESSAGES_REQUEST, answer=whole(input_tokens=_NUMBER), error=_ANTHROPIC_ERROR)
for _operation in (ANTHROPIC_MESSAGES, COUNT_TOKENS):
    _operation["responses"][529] = _operation["responses"].pop(503)  # Anthropic's status for an overload
