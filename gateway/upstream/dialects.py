"""Dialects: what kinds of model servers accept, as data. An upstream's dialect is found by its address, or named in the
environment, the agents file or the admin, where an administrator may also override its options. docs/upstreams.md has
the source of each rule."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from pydantic import ConfigDict

from gateway.upstream.cache import upstream_cache
from gateway.upstream_options import UpstreamOptions

_NOTHING: Mapping[str, Any] = {}


class Dialect(UpstreamOptions):
    """What a server accepts: the options that an administrator may change, and more. Names in `drop` may be paths into
    lists and objects: `messages.name` is the name of every message."""

    model_config = ConfigDict(frozen=True)

    name: str = "openai"
    # Placeholders for required fields that were lost: in every assistant message, in those with calls, and in the first
    # call within the current turn.
    message_placeholders: dict[str, Any] = {}
    calls_placeholders: dict[str, Any] = {}
    call_placeholders: dict[str, Any] = {}
    text_results: bool = False  # tool results must be text, not parts
    null_content: bool = True  # accepts `null` as the content of an assistant message with calls
    metadata_without_store: bool = True  # accepts `metadata` without `store`
    # Whether it supports custom tools; if False, functions replace them (gateway.upstream.custom_tools). None if
    # unknown: the request's `functions_only` decides.
    custom_tools: bool | None = None

    @property
    def recall_inside(self) -> bool:
        """Return True if recalled memories must be placed inside the last user message."""
        return self.system_first or self.alternate_roles

    def headers_with(self, key: str) -> dict[str, str]:
        """Return the additional headers of a request to an upstream with this key."""
        return {name: value.replace("{key}", key) for name, value in self.headers.items()}

    def with_options(self, options: Mapping[str, Any]) -> "Dialect":
        """Return this dialect with an administrator's options: lists and maps are extended, other values replaced."""
        changes: dict[str, Any] = {}
        for name, value in options.items():
            own = getattr(self, name)
            if isinstance(value, Mapping):
                value = {**own, **value}
            elif isinstance(value, list | tuple):
                value = [*own, *value]
            changes[name] = value
        return self.model_copy(update=changes)


_OLD_TOKEN_LIMIT = {"max_completion_tokens": "max_tokens"}

DIALECTS: Mapping[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect(name="openai", metadata_without_store=False, custom_tools=True),
        Dialect(name="azure", headers={"api-key": "{key}"}, metadata_without_store=False, custom_tools=True),
        Dialect(
            name="gemini",
            drop=["seed", "store", "metadata", "prompt_cache_key", "frequency_penalty", "top_k", "reasoning"],
            call_ids="any",
            call_placeholders={"extra_content": {"google": {"thought_signature": "skip_thought_signature_validator"}}},
        ),
        Dialect(name="anthropic", call_ids="word"),
        Dialect(name="deepseek", message_placeholders={"reasoning_content": " "}),
        Dialect(
            name="mistral",
            drop=["user", "store", "messages.name", "messages.reasoning_content"],
            rename={**_OLD_TOKEN_LIMIT, "seed": "random_seed"},
            system_first=True,
            alternate_roles=True,
            call_ids="nine",
            stream_options=False,
        ),
        Dialect(name="xai", drop=["messages.name", "tools.function.strict"]),
        Dialect(name="groq", drop=["metadata", "messages.reasoning_content", "messages.reasoning_details"]),
        Dialect(name="together"),
        Dialect(name="openrouter", call_ids="any"),
        Dialect(name="cohere"),
        Dialect(name="dashscope"),
        Dialect(name="kimi", call_ids="any", calls_placeholders={"reasoning_content": " "}),
        Dialect(
            name="zai",
            drop=["messages.name", "tools.function.strict", "frequency_penalty", "presence_penalty"],
            rename=_OLD_TOKEN_LIMIT,
            stream_options=False,
        ),
        Dialect(name="vllm", call_ids="any"),
        Dialect(name="sglang", call_ids="any"),
        Dialect(name="llamacpp", rename=_OLD_TOKEN_LIMIT, call_ids="any", text_results=True, null_content=False),
        Dialect(name="ollama", rename=_OLD_TOKEN_LIMIT, call_ids="any", text_results=True),
        Dialect(name="lmstudio", call_ids="any"),
        Dialect(name="strict", alternate_roles=True, system_first=True, call_ids="nine", text_results=True),
    )
}

_HOSTS = {
    "openai": "api.openai.com",
    "azure": "openai.azure.com services.ai.azure.com cognitiveservices.azure.com",
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
"""Dialects by host name suffix."""
PORTS: Mapping[int, str] = {11434: "ollama", 1234: "lmstudio"}
"""Dialects by port."""

# By upstream: the environment and the stored settings that its dialect was built from, and the dialect.
_cache: dict[str, tuple[Mapping[str, Any], Mapping[str, Any], Dialect]] = {}


def dialect_of(upstream: str) -> Dialect:
    """Return the dialect of an upstream with its options: the configured dialect, or else the one for its address. The
    environment overrides the agents file and the admin. The result is cached until one of these changes."""
    configured: Mapping[str, Any] = settings.DAYBOOK_UPSTREAMS.get(upstream) or _NOTHING
    stored = upstream_cache.settings_of(upstream)
    cached = _cache.get(upstream)
    if cached is None or cached[0] is not configured or cached[1] is not stored:
        name = configured.get("dialect") or stored.get("dialect") or dialect_at(str(configured.get("url") or ""))
        options = {**(stored.get("options") or _NOTHING), **(configured.get("options") or _NOTHING)}
        dialect = DIALECTS[name] if name else Dialect()  # OpenAI's protocol without its restrictions
        cached = _cache[upstream] = (configured, stored, dialect.with_options(options))
    return cached[2]


def dialect_at(url: str) -> str:
    """Return the name of the dialect for a URL, found by host name or port, or "" if it is unknown."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    for address, name in ADDRESSES.items():
        if host == address or host.endswith(("." + address, "-" + address)):
            return name
    return PORTS.get(parts.port or 0, "")
