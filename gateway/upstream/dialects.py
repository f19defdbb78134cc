"""How model servers differ, as data: one description per kind of server. It is found by the upstream's address or named
in the environment, the agents file or the admin, where an administrator may also change it. docs/upstreams.md has the
sources of each rule."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from gateway.upstream.known import known

_NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What a server accepts. Names in `drop` may lead into lists and objects: `messages.name` is the name of every
    message."""

    name: str = "openai"
    drop: tuple[str, ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    set: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)  # {key} stands for the upstream's key
    query: Mapping[str, str] = field(default_factory=dict)
    alternate_roles: bool = False  # user and assistant in turn, beginning with the user
    system_first: bool = False  # system text only in one leading message
    call_ids: str = "short"  # see gateway.upstream.call_ids
    stream_options: bool = True
    replay_reasoning: bool = True  # send kept fields of an answer back to the server that gave it
    connect_seconds: float | None = None
    first_byte_seconds: float | None = None
    idle_seconds: float | None = None
    # Stand-ins for what is demanded and was lost: fields of every assistant message, of one with calls, of its first
    # call within the current turn.
    lost_said: Mapping[str, Any] = field(default_factory=dict)
    lost_called: Mapping[str, Any] = field(default_factory=dict)
    lost_call: Mapping[str, Any] = field(default_factory=dict)
    text_results: bool = False  # results of tools as text, never as parts
    null_said: bool = True  # accepts `null` as the text of an assistant message with calls
    metadata_alone: bool = True  # is accepted without `store`
    # Whether it takes custom tools; if not, functions stand for them (gateway.upstream.custom_tools). None: it is asked
    # in the client's language.
    custom_tools: bool | None = None

    @property
    def recall_inside(self) -> bool:
        """Return True if recalled memories must stand inside the last message of the user."""
        return self.system_first or self.alternate_roles

    def headers_with(self, key: str) -> dict[str, str]:
        """Return the additional headers of a request, for an upstream with this key."""
        return {name: value.replace("{key}", key) for name, value in self.headers.items()}

    def changed(self, options: Mapping[str, Any]) -> "Dialect":
        """Return this dialect with an administrator's options: lists and maps are added to its own, other values
        replaced."""
        more: dict[str, Any] = {}
        for name, value in options.items():
            own = getattr(self, name)
            if isinstance(value, Mapping):
                value = {**own, **value}
            elif isinstance(value, list | tuple):
                value = (*own, *value)
            more[name] = value
        return replace(self, **more)


_NO_MORE_TOKENS_FIELD = {"max_completion_tokens": "max_tokens"}

DIALECTS: Mapping[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect(name="openai", metadata_alone=False, custom_tools=True),
        Dialect(name="azure", headers={"api-key": "{key}"}, metadata_alone=False, custom_tools=True),
        Dialect(
            name="gemini",
            drop=("seed", "store", "metadata", "prompt_cache_key", "frequency_penalty", "top_k", "reasoning"),
            call_ids="any",
            lost_call={"extra_content": {"google": {"thought_signature": "skip_thought_signature_validator"}}},
        ),
        Dialect(name="anthropic", call_ids="word"),
        Dialect(name="deepseek", lost_said={"reasoning_content": " "}),
        Dialect(
            name="mistral",
            drop=("user", "store", "messages.name", "messages.reasoning_content"),
            rename={**_NO_MORE_TOKENS_FIELD, "seed": "random_seed"},
            system_first=True,
            alternate_roles=True,
            call_ids="nine",
            stream_options=False,
        ),
        Dialect(name="xai", drop=("messages.name", "tools.function.strict")),
        Dialect(name="groq", drop=("metadata", "messages.reasoning_content", "messages.reasoning_details")),
        Dialect(name="together"),
        Dialect(name="openrouter", call_ids="any"),
        Dialect(name="cohere"),
        Dialect(name="dashscope"),
        Dialect(name="kimi", call_ids="any", lost_called={"reasoning_content": " "}),
        Dialect(
            name="zai",
            drop=("messages.name", "tools.function.strict", "frequency_penalty", "presence_penalty"),
            rename=_NO_MORE_TOKENS_FIELD,
            stream_options=False,
        ),
        Dialect(name="vllm", call_ids="any"),
        Dialect(name="sglang", call_ids="any"),
        Dialect(name="llamacpp", rename=_NO_MORE_TOKENS_FIELD, call_ids="any", text_results=True, null_said=False),
        Dialect(name="ollama", rename=_NO_MORE_TOKENS_FIELD, call_ids="any", text_results=True),
        Dialect(name="lmstudio", call_ids="any"),
        Dialect(name="strict", alternate_roles=True, system_first=True, call_ids="nine", text_results=True),
    )
}

# Servers that speak like OpenAI without its rules on what is refused.
_UNKNOWN = Dialect(name="openai")

_HOSTS = {
    "openai": "api.openai.com",
    "azure": "openai.azure.com services.ai.azure.com",
    "gemini": "generativelanguage.googleapis.com aiplatform.googleapis.com",
    "anthropic": "api.anthropic.com",
    "deepseek": "api.deepseek.com",
    "mistral": "api.mistral.ai",
    "xai": "api.x.ai",
    "groq": "api.groq.com",
    "together": "api.together.xyz api.together.ai",
    "openrouter": "openrouter.ai",
    "cohere": "api.cohere.ai api.cohere.com",
    "dashscope": "dashscope.aliyuncs.com dashscope-intl.aliyuncs.com",
    "kimi": "api.moonshot.ai api.moonshot.cn",
    "zai": "api.z.ai open.bigmodel.cn",
}
ADDRESSES: Mapping[str, str] = {end: name for name, ends in _HOSTS.items() for end in ends.split()}
"""Dialects by the end of a host's name."""
PORTS: Mapping[int, str] = {11434: "ollama", 1234: "lmstudio"}
"""Dialects by a port of this machine."""

# Dialects by upstream, with the environment and the stored settings that they were made from.
_made: dict[str, tuple[Mapping[str, Any], Mapping[str, Any], Dialect]] = {}


def dialect_of(upstream: str) -> Dialect:
    """Return the dialect of an upstream, with the options that were set: the named one, or else the one of its address.
    The environment comes before the agents file and the admin. The result is cached until one of them changes."""
    configured: Mapping[str, Any] = settings.DAYBOOK_UPSTREAMS.get(upstream) or _NOTHING
    stored = known.settings_of(upstream)
    made = _made.get(upstream)
    if made is None or made[0] is not configured or made[1] is not stored:
        name = configured.get("dialect") or stored.get("dialect") or recognised(str(configured.get("url") or ""))
        options = {**(stored.get("options") or _NOTHING), **(configured.get("options") or _NOTHING)}
        dialect = DIALECTS[name] if name else _UNKNOWN
        made = _made[upstream] = (configured, stored, dialect.changed(options))
    return made[2]


def recognised(url: str) -> str:
    """Return the dialect of the server at an address, by its host's name or its port; "" for one that is not known."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    for address, name in ADDRESSES.items():
        if host == address or host.endswith(("." + address, "-" + address)):
            return name
    return PORTS.get(_port(url), "")


def _port(url: str) -> int:
    try:
        return urlsplit(url).port or 0
    except ValueError:
        return 0
