"""The settings of the agents file, with their defaults, limits and descriptions. Its JSON Schema, the admin's help
texts and the validation of both are derived from these models."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AliasGenerator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    StringConstraints,
    Tag,
    model_validator,
)
from pydantic.alias_generators import to_camel

from gateway.upstream_options import UpstreamSettings

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]

OptionalName = Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9][A-Za-z0-9_.-]{0,63})?$")]

MAX_TARGETS = 5
FORMS = ("text", "list")
"""The two forms of a setting that is a text or a list of texts. Pydantic puts these names into error paths."""
_BY_FORM = Discriminator(lambda value: FORMS[isinstance(value, list | tuple)])
_SEVERAL = Field(strict=False, min_length=1, max_length=MAX_TARGETS)
_Model = Annotated[str, StringConstraints(max_length=200, strip_whitespace=True)]  # blank: empty, so the default
_RoleModel = Annotated[str, StringConstraints(max_length=300, strip_whitespace=True)]
_Named = Annotated[_Model, StringConstraints(min_length=1)]
Characters = Annotated[int, Field(ge=0, le=10_000_000)]
Real = Annotated[float, Field(strict=False)]  # an integer, too
Hours = Annotated[Real, Field(ge=0, le=8760)]
Money = Annotated[Real, Field(ge=0, le=1e9, allow_inf_nan=False)]
Models = Annotated[Annotated[_Model, Tag("text")] | Annotated[tuple[_Named, ...], _SEVERAL, Tag("list")], _BY_FORM]
Upstreams = Annotated[Annotated[Name, Tag("text")] | Annotated[tuple[Name, ...], _SEVERAL, Tag("list")], _BY_FORM]

# YAML reads a bare `off` as false.
Hold = Annotated[
    Literal["off", "untrusted", "strict"], BeforeValidator(lambda value: "off" if value is False else value)
]

_MAX_PARAMETERS = 4000  # characters of JSON
# Parameters that the gateway itself sets, or reads from a client's request.
RESERVED = frozenset(
    {
        "function_call", "functions", "messages", "metadata", "model", "n", "stream", "stream_options", "tool_choice",
        "tools", "user",
    }
)  # fmt: skip

# Parameters with the same meaning: if a client gives one of them, defaults for the others do not apply.
_ALIKE = (frozenset({"max_tokens", "max_completion_tokens"}), frozenset({"reasoning_effort", "reasoning", "thinking"}))


def _checked_parameters(value: dict[str, Any]) -> dict[str, Any]:
    """Return default parameters unchanged. Raises ValueError if they are not allowed."""
    if reserved := sorted(RESERVED & value.keys()):
        raise ValueError(f"{', '.join(reserved)} can't be a default: each request sets it itself")
    if len(json.dumps(value, allow_nan=False)) > _MAX_PARAMETERS:
        raise ValueError(f"at most {_MAX_PARAMETERS} characters of JSON")
    return value


Parameters = Annotated[dict[str, JsonValue], AfterValidator(_checked_parameters)]


def with_defaults(given: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the client's parameters, with defaults for those that it omits. A null removes a parameter."""
    if not defaults:
        return given
    overridden = set(given).union(*(names for names in _ALIKE if names & given.keys()))
    return {name: value for name, value in defaults.items() if name not in overridden} | given


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, protected_namespaces=())


class Tool(_Strict):
    """A group of tools that the agent gets."""

    type: Literal["memory"] = Field(
        description="memory: add, update, delete, search and list memories in the conversation."
    )


def as_list(value: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return a setting that is a text or a list of texts as a tuple."""
    return (value,) if isinstance(value, str) else tuple(value)


class AgentSettings(_Strict):
    """One agent: a named configuration that clients name as `model`."""

    model: Models = Field(
        "",
        description="Upstream model; empty: DAYBOOK_MODEL. A list: the first answers, the others if it fails. "
        "In a list, upstream/model names the upstream too.",
    )
    upstream: Upstreams = Field(
        "default",
        description="Name of the upstream: default is OPENAI_BASE_URL, others are DAYBOOK_UPSTREAM_<NAME>_URL. "
        "A list: one for each model, or all for a single model.",
    )
    parameters: Parameters = Field(
        default_factory=dict,
        description="Default parameters of a turn's requests, such as temperature, max_tokens and reasoning_effort; "
        "the client's take precedence.",
    )
    instructions: str = Field("", max_length=100_000, description="The system prompt, sent first in every request.")
    tools: tuple[Tool, ...] = Field((), strict=False, description="Tools of the main conversation.")
    book: Name = Field("main", description="The memory book; agents that name the same book share it.")
    inject_memories: bool = Field(False, description="Give the model its memories.")
    inject_memories_strategy: Literal["local", "llm"] = Field(
        "local", description="How keywords are found: by rule, or by one extra request."
    )
    memory_search: Literal["ranked", "match_all"] = Field(
        "ranked", description="How memories are searched: best first, or every keyword must occur."
    )
    max_inject_memories: int = Field(
        20,
        ge=1,
        le=1000,
        description="Maximum distinct memories in one request, frozen and recalled together. Recalled ones must fit "
        "into 4 KiB, so there may be fewer.",
    )
    recall_role: Literal["system", "user"] = Field(
        "system", description="Role of the recall message, for upstreams that refuse a system message in the middle."
    )
    memory_review_interval: int = Field(
        0, ge=0, le=1000, description="User turns between background reviews; 0 = none after turns."
    )
    memory_review_model: _Model = Field(
        "",
        description="Model of the reviews, on the agent's upstream unless written upstream/model; empty: the agent's.",
    )
    memory_review_timeout: int = Field(30, ge=1, le=3000, description="Time limit of one review attempt, in seconds.")
    memory_review_max_writes: int = Field(5, ge=0, le=100, description="Maximum accepted writes of one review.")
    memory_review_verbose: bool = Field(False, description="Tell the person when a review saved something.")
    memory_review_idle_minutes: int = Field(
        0,
        ge=0,
        le=100_000,
        description="Review a session with unreviewed turns after this pause, whatever the interval; 0 = never.",
    )
    memory_review_approval: bool = Field(False, description="Writes of a review wait for a person's approval.")
    memory_hold: Hold = Field(
        "untrusted",
        description="Automatic writes that wait for a person: off: none; untrusted: those that rest on pasted text, "
        "tools or documents; strict: all that do not rest on the person's own words.",
    )
    user_char_limit: Characters = Field(
        1375, description="Budget for memories about the person, in characters; 0 = no limit."
    )
    memory_char_limit: Characters = Field(
        2200, description="Budget for memories about the work, in characters; 0 = no limit."
    )
    frozen_char_limit: Characters = Field(
        3575, description="Maximum characters of the frozen block; recall finds the rest. 0 = nothing frozen."
    )
    context_token_limit: int = Field(
        32_000, ge=2000, le=100_000_000, description="Tokens above which older turns of a session are compacted."
    )

    @model_validator(mode="after")
    def _check_pairs(self) -> "AgentSettings":
        models, upstreams = map(as_list, (self.model, self.upstream))
        if 1 not in {len(models), len(upstreams)} and len(models) != len(upstreams):
            counts = f"{len(models)} models and {len(upstreams)} upstreams"
            raise ValueError(f"{counts} make no pairs: name as many of both, or one of either")
        return self

    @property
    def reviews_on(self) -> bool:
        """Whether sessions are reviewed automatically."""
        return bool(self.memory_review_interval or self.memory_review_idle_minutes)

    @property
    def memory_tools(self) -> bool:
        """Whether the main conversation has the memory tools."""
        return any(tool.type == "memory" for tool in self.tools)


class ConsolidationSettings(_Strict):
    """Consolidation of past sessions into durable documents."""

    model_config = ConfigDict(populate_by_name=True, alias_generator=AliasGenerator(validation_alias=to_camel))

    enabled: bool = Field(False, description="Consolidate past sessions; off: nothing runs and nothing is injected.")
    upstream: OptionalName = Field(
        "",
        description="Upstream that consolidates books which agents of different upstreams share; empty: these books "
        "are not consolidated.",
    )
    max_rollout_age_days: int = Field(30, ge=1, le=3650, description="Older sessions are not read.")
    min_rollout_idle_hours: Hours = Field(12, description="Idle time of a session before it is read; 0 = at once.")
    max_rollouts_per_startup: int = Field(
        64,
        ge=1,
        le=1000,
        description="Maximum sessions read at a worker's start or a scheduled check, over all books; a requested run "
        "may read as many by itself.",
    )
    summary_injection_token_limit: int = Field(
        5000, ge=100, le=100_000, description="Maximum tokens of the summary in a request."
    )
    # For advanced use.
    concurrency: int = Field(8, ge=1, le=64, description="Sessions read concurrently in one run.")
    parallel_runs: int = Field(1, ge=1, le=1000, description="Concurrent automatic runs; the other workers stay free.")
    scan_limit: int = Field(300, ge=1, le=100_000, description="Maximum sessions examined to find those to read.")
    lease_seconds: Real = Field(120, ge=1, le=86_400, description="A worker that is silent for longer loses its run.")
    request_seconds: Real = Field(120, ge=1, le=3000, description="Time limit of one model answer.")
    max_retries: int = Field(3, ge=0, le=20, description="Retries of a failed session or synthesis.")
    retry_seconds: Real = Field(
        30, ge=0, le=86_400, description="Pause before the first retry; each further pause is four times as long."
    )
    extraction_token_limit: int = Field(
        24_000, ge=500, le=1_000_000, description="Maximum tokens of one session; a longer one loses its middle."
    )
    synthesis_token_limit: int = Field(
        60_000, ge=1000, le=1_000_000, description="Maximum tokens of notes read by one synthesis, newest first."
    )
    max_extractions: int = Field(256, ge=1, le=10_000, description="Maximum sessions whose notes one synthesis reads.")
    synthesis_cooldown_hours: Hours = Field(6, description="Minimum time between two automatic syntheses of a book.")
    schedule_minutes: Real = Field(
        60, ge=0, le=525_600, description="How often books are checked; 0 = only when a worker starts."
    )
    max_secrets: int = Field(3, ge=0, le=1000, description="An answer with more secrets is rejected.")
    max_requests_per_run: int = Field(200, ge=1, le=1_000_000, description="Maximum model requests of one run.")
    max_tokens_per_run: int = Field(2_000_000, ge=1000, description="Maximum tokens of one run, in and out.")
    max_requests_per_day: int = Field(
        1000, ge=1, le=10_000_000, description="Maximum model requests of an owner per day."
    )
    max_tokens_per_day: int = Field(10_000_000, ge=1000, description="Maximum tokens of an owner per day (UTC).")


class ModelRoles(_Strict):
    """Models of background work by role, written model or upstream/model. They apply to agents on the default upstream,
    and to agents on the upstream that they name; an agent on another upstream uses its own model."""

    default: _RoleModel = Field("", description="Reads past sessions; model or upstream/model. Empty: DAYBOOK_MODEL.")
    smol: _RoleModel = Field(
        "", description="Writes documents and search words; model or upstream/model. Empty: the default role."
    )


class Price(_Strict):
    """Money per million tokens."""

    input: Money = Field(description="Price of a million input tokens.")
    output: Money = Field(description="Price of a million output tokens.")


class AgentsFile(_Strict):
    """The agents file: agents, and the memory settings."""

    agents: dict[Name, AgentSettings] = Field(default_factory=dict, description="Agents by name.")
    memories: ConsolidationSettings | None = Field(None, description="Consolidation.")
    model_roles: ModelRoles | None = Field(None, description="Models of background work by role.")
    prices: dict[str, Price] | None = Field(None, description="Prices by model; without one no money is shown.")
    upstreams: dict[Name, UpstreamSettings] | None = Field(
        None,
        description="Dialects and options of upstreams, by their names in the environment, which contains their "
        "addresses and keys; a dialect and options in the environment override these.",
    )
