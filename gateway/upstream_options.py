"""The options of an upstream's dialect. The environment, the agents file and the admin validate them with one model.

The module does not use Django, since the environment is read before Django is set up. gateway.upstream.dialects extends
the options to dialects."""

import json
import re
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

DialectName = Literal[
    "openai", "azure", "gemini", "anthropic", "deepseek", "mistral", "xai", "groq", "together", "openrouter", "cohere",
    "dashscope", "kimi", "zai", "vllm", "sglang", "llamacpp", "ollama", "lmstudio", "strict",
]  # fmt: skip
DIALECTS: tuple[str, ...] = get_args(DialectName)
MAX_AT_ONCE = 10_000
UPSTREAM_NAME = "[a-z0-9_]+"
"""Pattern of an upstream's name; in the names of variables, of any case."""
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_FIXED = frozenset({"model", "messages", "stream"})  # essential fields, which must not be dropped, renamed or set


def _without_defaults(schema: dict[str, Any]) -> None:
    """Remove the defaults from a schema, since options that are not given have the dialect's values."""
    for part in schema["properties"].values():
        part.pop("default", None)


class UpstreamOptions(BaseModel):
    """Changes to a dialect. Lists and maps extend the dialect's own; other values replace them."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra=_without_defaults)

    drop: list[str] = Field([], description="Fields to omit; messages.name means that field of every message.")
    rename: dict[str, str] = Field({}, description="Fields to rename.")
    set: dict[str, JsonValue] = Field({}, description="Fields with a fixed value.")
    headers: dict[str, str] = Field(
        {}, description="Sent with every request; {key} stands for the upstream's key. Never write a key here."
    )
    query: dict[str, str] = Field({}, description="Query parameters, sent with every request.")
    alternate_roles: bool = Field(False, description="Roles must alternate, beginning with the user.")
    system_first: bool = Field(False, description="Only the first message may be a system message.")
    call_ids: Literal["any", "short", "word", "nine"] = Field(
        "short", description="Ids of tool calls that are accepted."
    )
    stream_options: bool = Field(True, description="Whether stream_options is sent.")
    replay_reasoning: bool = Field(True, description="Whether the model's own reasoning is sent to it again.")
    connect_seconds: float = Field(0, gt=0, le=86_400, description="Time to connect.")
    first_byte_seconds: float = Field(0, gt=0, le=86_400, description="Maximum time until an answer begins.")
    idle_seconds: float = Field(0, gt=0, le=86_400, description="Maximum silence once an answer has begun.")

    @model_validator(mode="after")
    def _check_names(self) -> "UpstreamOptions":
        if wrong := _FIXED & {*self.drop, *self.rename, *self.rename.values(), *self.set}:
            raise ValueError(f"{sorted(wrong)[0]} can't be dropped, renamed or set")
        json.dumps(self.set, allow_nan=False)  # raises ValueError
        for name, value in self.headers.items():
            if not _HEADER.fullmatch(name) or not value.isprintable():
                raise ValueError(f"headers: {name!r} is no header that can be sent")
        return self


class UpstreamSettings(BaseModel):
    """The dialect and the options of one upstream. Its address and key are in the environment only."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra=_without_defaults)

    dialect: DialectName | None = Field(
        None, description="The kind of server; by default it is derived from the address."
    )
    options: UpstreamOptions = Field(UpstreamOptions(), description="Changes to that dialect.")


def read_dialect(value: str) -> str:
    """Return the name of a dialect. Raises ValueError, whose message lists the allowed names."""
    name = value.strip().lower()
    if name not in DIALECTS:
        raise ValueError(f"allowed are {', '.join(DIALECTS)}")
    return name


def read_at_once(value: str) -> int:
    """Return the maximum number of concurrent requests to an upstream. Raises ValueError with the allowed range."""
    if not value.strip().isdecimal() or not 1 <= int(value) <= MAX_AT_ONCE:
        raise ValueError(f"allowed are numbers from 1 to {MAX_AT_ONCE}")
    return int(value)


def read_options(value: str) -> dict[str, Any]:
    """Return validated options from JSON. Raises ValueError, whose message repeats no value, since one may be a key."""
    try:
        given = json.loads(value)
    except ValueError:
        raise ValueError("allowed is a JSON object") from None
    if not isinstance(given, dict):
        raise ValueError("allowed is a JSON object")
    try:
        return UpstreamOptions.model_validate(given).model_dump(exclude_unset=True)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        raise ValueError(f"{where} is no option; allowed are {', '.join(UpstreamOptions.model_fields)}")
    if not where:
        raise ValueError(first["msg"].removeprefix("Value error, "))
    raise ValueError(f"{where}: {first['msg'][0].lower()}{first['msg'][1:]}")
