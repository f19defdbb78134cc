"""The settings of the agents file, with their defaults, limits and descriptions. Its JSON Schema, the admin's help
texts and the validation of both are derived from these models."""

import json
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AliasGenerator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    StringConstraints,
    Tag,
    model_validator,
)
from pydantic.alias_generators import to_camel

from gateway.agents.upstream_options import UpstreamSettings

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]

OptionalName = Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9][A-Za-z0-9_.-]{0,63})?$")]

MAX_TARGETS = 5
FORMS = ("text", "list")
"""The two forms of a setting that is a text or a list of texts. Pydantic puts these names into error paths."""
_BY_FORM = Discriminator(lambda value: FORMS[isinstance(value, list | tuple)])
_SEVERAL = Field(strict=False, min_length=1, max_length=MAX_TARGETS)
_Model = Annotated[str, StringConstraints(max_length=200)]
_Named = Annotated[_Model, StringConstraints(min_length=1)]
Models = Annotated[Annotated[_Model, Tag("text")] | Annotated[tuple[_Named, ...], _SEVERAL, Tag("list")], _BY_FORM]
Upstreams = Annotated[Annotated[Name, Tag("text")] | Annotated[tuple[Name, ...], _SEVERAL, Tag("list")], _BY_FORM]

_MAX_PARAMETERS = 4000  # characters of JSON
# Parameters that the gateway itself sets, or reads from a client's request.
RESERVED = frozenset(
    {
        "function_call", "functions", "messages", "metadata", "model", "n", "stream", "stream_options", "tool_choice",
        "tools", "user",
    }
)  # fmt: skip


def _checked_parameters(value: dict[str, Any]) -> dict[str, Any]:
    """Return default parameters unchanged. Raises ValueError if they are not allowed."""
    if reserved := sorted(RESERVED & value.keys()):
        raise ValueError(f"{', '.join(reserved)} can't be a default: each request says it itself")
    if len(json.dumps(value, allow_nan=False)) > _MAX_PARAMETERS:
        raise ValueError(f"at most {_MAX_PARAMETERS} characters of JSON")
    return value


Parameters = Annotated[dict[str, JsonValue], AfterValidator(_checked_parameters)]


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
        description="Upstream model; empty: DAYBOOK_MODEL. Several: the first answers, the others when it fails. "
        "One of several that is written upstream/model is of that upstream.",
    )
    upstream: Upstreams = Field(
        "default",
        description="Name of the upstream: default is OPENAI_BASE_URL, others are DAYBOOK_UPSTREAM_<NAME>_URL. "
        "Several: one for each model, or all for the only model.",
    )
    parameters: Parameters = Field(
        default_factory=dict,
        description="Parameters of a turn's requests that the client does not give itself, such as temperature, "
        "max_tokens and reasoning_effort.",
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
        description="Most distinct memories in one request, frozen and recalled together. Recalled ones must fit "
        "within 4 KiB of recall, so they may be fewer.",
    )
    recall_role: Literal["system", "user"] = Field(
        "system", description="Role of the recall message, for upstreams that refuse a system message in the middle."
    )
    memory_review_interval: int = Field(
        0, ge=0, le=1000, description="User turns between background reviews; 0 = none after turns."
    )
    memory_review_model: str = Field(
        "",
        max_length=200,
        description="Model of the reviews, on the agent's upstream unless written upstream/model; empty: the agent's.",
    )
    memory_review_timeout: int = Field(30, ge=1, le=3000, description="Seconds for one attempt of a review.")
    memory_review_max_writes: int = Field(5, ge=0, le=100, description="Most accepted writes of one review.")
    memory_review_verbose: bool = Field(False, description="Tell the person when a review saved something.")
    memory_review_idle_minutes: int = Field(
        0,
        ge=0,
        le=100_000,
        description="Review a session with unreviewed turns after this pause, whatever the interval; 0 = never.",
    )
    memory_review_approval: bool = Field(False, description="Writes of a review wait for a person.")
    memory_hold: Literal["off", "untrusted", "strict"] = Field(
        "untrusted",
        description="Automatic writes that wait for a person: off: none; untrusted: those that rest on pasted text, "
        "tools or documents; strict: all that do not rest on the person's own words.",
    )
    user_char_limit: int = Field(
        1375, ge=0, le=10_000_000, description="Budget of what is about the person, in characters; 0 = no limit."
    )
    memory_char_limit: int = Field(
        2200, ge=0, le=10_000_000, description="Budget of what is about the work, in characters; 0 = no limit."
    )
    frozen_char_limit: int = Field(
        3575,
        ge=0,
        le=10_000_000,
        description="Most characters in the frozen block; the rest is found by recall. 0 = nothing frozen.",
    )
    context_token_limit: int = Field(
        32_000, ge=2000, le=100_000_000, description="Above it, older turns of a session are compacted."
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

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        populate_by_name=True,
        alias_generator=AliasGenerator(validation_alias=to_camel),
    )

    enabled: bool = Field(False, description="Consolidate past sessions; off: nothing runs and nothing is injected.")
    upstream: OptionalName = Field(
        "",
        description="Upstream that consolidates books which agents of different upstreams share; empty: these books "
        "are not consolidated.",
    )
    max_rollout_age_days: int = Field(30, ge=1, le=3650, description="Sessions older than this are left alone.")
    min_rollout_idle_hours: float = Field(
        12, ge=0, le=8760, strict=False, description="A session rests this long before it is read; 0 = at once."
    )
    max_rollouts_per_startup: int = Field(
        64,
        ge=1,
        le=1000,
        description="Most sessions read when a worker starts or the schedule comes round, over all books; a run that "
        "somebody asks for may read as many by itself.",
    )
    summary_injection_token_limit: int = Field(
        5000, ge=100, le=100_000, description="Most tokens of the summary in a request."
    )
    # For advanced use.
    concurrency: int = Field(8, ge=1, le=64, description="Sessions that are read at the same time in one run.")
    parallel_runs: int = Field(
        1, ge=1, le=1000, description="Runs at the same time that nobody asked for; the other workers are free."
    )
    scan_limit: int = Field(300, ge=1, le=100_000, description="Most sessions looked at to find those to read.")
    lease_seconds: float = Field(
        120, ge=1, le=86_400, strict=False, description="A worker that is silent for so long has lost its run."
    )
    request_seconds: float = Field(120, ge=1, le=3000, strict=False, description="Time for one answer of the model.")
    max_retries: int = Field(3, ge=0, le=20, description="How often a failed session or synthesis is tried again.")
    retry_seconds: float = Field(
        30,
        ge=0,
        le=86_400,
        strict=False,
        description="Pause before the first retry; each further one is four times it.",
    )
    extraction_token_limit: int = Field(
        24_000, ge=500, le=1_000_000, description="Most tokens of one session; the middle of a longer one is left out."
    )
    synthesis_token_limit: int = Field(
        60_000, ge=1000, le=1_000_000, description="Most tokens of notes that one synthesis reads, newest first."
    )
    max_extractions: int = Field(256, ge=1, le=10_000, description="Most sessions' notes that one synthesis reads.")
    synthesis_cooldown_hours: float = Field(
        6, ge=0, le=8760, strict=False, description="Least time between two syntheses of a book that nobody asked for."
    )
    schedule_minutes: float = Field(
        60, ge=0, le=525_600, strict=False, description="How often books are looked at; 0 = only when a worker starts."
    )
    max_secrets: int = Field(3, ge=0, le=1000, description="More secrets than this in an answer reject it.")
    max_requests_per_run: int = Field(200, ge=1, le=1_000_000, description="Most model requests of one run.")
    max_tokens_per_run: int = Field(2_000_000, ge=1000, description="Most tokens of one run, in and out.")
    max_requests_per_day: int = Field(1000, ge=1, le=10_000_000, description="Most model requests of one owner a day.")
    max_tokens_per_day: int = Field(10_000_000, ge=1000, description="Most tokens of one owner a day (UTC).")


class ModelRoles(_Strict):
    """Models of background work by role, written model or upstream/model. They apply to agents on the default upstream,
    and to agents on the upstream that they name; an agent on another upstream uses its own model."""

    default: str = Field(
        "", max_length=300, description="Reads past sessions; model or upstream/model. Empty: DAYBOOK_MODEL."
    )
    smol: str = Field(
        "",
        max_length=300,
        description="Writes documents and search words; model or upstream/model. Empty: the default role.",
    )


class Price(_Strict):
    """Money per million tokens."""

    input: float = Field(ge=0, allow_inf_nan=False, strict=False, description="Price of a million input tokens.")
    output: float = Field(ge=0, allow_inf_nan=False, strict=False, description="Price of a million output tokens.")


class AgentsFile(_Strict):
    """The agents file: agents, and the memory settings."""

    agents: dict[Name, AgentSettings] = Field(default_factory=dict, description="Agents by name.")
    memories: ConsolidationSettings | None = Field(None, description="Consolidation.")
    model_roles: ModelRoles | None = Field(None, description="Models of background work by role.")
    prices: dict[str, Price] | None = Field(None, description="Prices by model; without one no money is shown.")
    upstreams: dict[Name, UpstreamSettings] | None = Field(
        None,
        description="What upstreams take, by the name they have in the environment, which holds their addresses and "
        "keys; its own dialect and options come before these.",
    )


def agents_file_schema() -> dict[str, Any]:
    """Return the JSON Schema of the agents file. It contains both accepted names of each memory setting, such as
    `scan_limit` and `scanLimit`, and does not allow a file to use both."""
    schema = AgentsFile.model_json_schema(by_alias=False)
    memories = schema["$defs"][ConsolidationSettings.__name__]
    twice = {name: to_camel(name) for name in memories["properties"] if to_camel(name) != name}
    for name, camel in twice.items():
        memories["properties"][camel] = memories["properties"][name]
    memories["allOf"] = [{"not": {"required": [name, camel]}} for name, camel in twice.items()]
    return schema
