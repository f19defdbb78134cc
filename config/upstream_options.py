"""What the environment may say of an upstream's dialect, checked when the settings are read.
gateway.upstream.dialects holds the dialects themselves; a test holds both equal."""

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

DIALECTS = (
    "openai",
    "azure",
    "gemini",
    "anthropic",
    "deepseek",
    "mistral",
    "xai",
    "groq",
    "together",
    "openrouter",
    "cohere",
    "dashscope",
    "kimi",
    "zai",
    "vllm",
    "sglang",
    "llamacpp",
    "ollama",
    "lmstudio",
    "strict",
)
MOST_AT_ONCE = 10_000
_NEVER = frozenset({"model", "messages", "stream"})  # what makes a request one: not to be dropped, renamed or set


class UpstreamOptions(BaseModel):
    """The keys of `DAYBOOK_UPSTREAM_<NAME>_OPTIONS`. Lists and maps are added to those of the dialect."""

    model_config = ConfigDict(extra="forbid", strict=True)

    drop: list[str] = []
    rename: dict[str, str] = {}
    set: dict[str, JsonValue] = {}
    headers: dict[str, str] = {}
    query: dict[str, str] = {}
    alternate_roles: bool = False
    system_first: bool = False
    call_ids: Literal["any", "short", "word", "nine"] = "any"
    stream_options: bool = True
    replay_reasoning: bool = True
    connect_seconds: float = Field(1, gt=0)
    first_byte_seconds: float = Field(1, gt=0)
    idle_seconds: float = Field(1, gt=0)


def read_dialect(value: str) -> str:
    """Return the name of a dialect. Raises ValueError, whose text says what is allowed."""
    name = value.strip().lower()
    if name not in DIALECTS:
        raise ValueError(f"allowed are {', '.join(DIALECTS)}")
    return name


def read_at_once(value: str) -> int:
    """Return how many requests an upstream is given at once. Raises ValueError, whose text says what is allowed."""
    if not value.strip().isdecimal() or not 1 <= int(value) <= MOST_AT_ONCE:
        raise ValueError(f"allowed are numbers from 1 to {MOST_AT_ONCE}")
    return int(value)


def read_options(value: str) -> dict[str, Any]:
    """Return the options that were given, checked. Raises ValueError, whose text repeats no value: one may be a key."""
    try:
        given = json.loads(value)
    except ValueError:
        raise ValueError("allowed is a JSON object") from None
    if not isinstance(given, dict):
        raise ValueError("allowed is a JSON object")
    try:
        checked = UpstreamOptions.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise ValueError(f"{where} is no option; allowed are {', '.join(UpstreamOptions.model_fields)}") from None
        raise ValueError(f"{where}: {first['msg'][0].lower()}{first['msg'][1:]}") from None
    if wrong := _NEVER & {*checked.drop, *checked.rename, *checked.rename.values(), *checked.set}:
        raise ValueError(f"{sorted(wrong)[0]} can't be dropped, renamed or set")
    return checked.model_dump(exclude_unset=True)
