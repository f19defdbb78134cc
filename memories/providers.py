"""External memory providers, named in DAYBOOK_MEMORY_PROVIDERS by dotted path. Each is queried in a lane of its own and
informed of every completed run after the answer was delivered. Native memory does not use this: see
memories.recall.two_lanes for its lanes and memories.recall.threads for its record of a run."""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

logger = logging.getLogger("daybook.providers")

RESERVED_NAMES = frozenset({
    "short_term", "long_term", "snapshot", "thread", "guidance", "keywords", "embedding", "providers", "blocks",
    "earlier_conversation",
})  # fmt: skip
"""Names that a run's trace and the metrics use for native parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The owner, book and conversation of a query; `request_id` is the same in every lane of one run."""

    owner_id: UUID
    book: str
    session_id: UUID
    request_id: str


class MemoryProvider:
    """The base class of providers. Both methods are optional."""

    name = "provider"

    async def retrieve_context(self, scope: Scope, query: str) -> Sequence[str]:
        """Return texts that may help to answer `query`, best first; each is truncated to 512 bytes. The method may
        raise. Results that arrive after the lane's deadline are not used."""
        return ()

    async def record_interaction(
        self, scope: Scope, messages: Sequence[Mapping[str, Any]], run_id: UUID, metadata: Mapping[str, Any]
    ) -> None:
        """Record a completed run, its user message and its answer as `{role, content}`. Called once, no retries."""
        return None


class ProviderUnusable(Exception):
    """A configured provider cannot be used. The message is one line with the path and the reason."""


def providers() -> tuple[MemoryProvider, ...]:
    """Return the configured providers, one instance per process. Raises ProviderUnusable; config.apps calls this at
    startup, so that a wrong path stops the process."""
    return _load(tuple(settings.MEMORY_PROVIDERS))


@cache
def _load(paths: tuple[str, ...]) -> tuple[MemoryProvider, ...]:
    loaded: dict[str, MemoryProvider] = {}
    for path in paths:
        provider = _load_one(path)
        name = getattr(provider, "name", None)
        if not isinstance(name, str) or not name or name in RESERVED_NAMES or name in loaded:
            raise ProviderUnusable(f"{path!r}; its name {name!r} is empty, taken or reserved")
        loaded[name] = provider
    return tuple(loaded.values())


def _load_one(path: str) -> MemoryProvider:
    try:
        provider: MemoryProvider = import_string(path)()
    except ImportError as error:
        raise ProviderUnusable(f"{path!r}; it cannot be imported ({' '.join(str(error).split())})") from error
    except Exception as error:
        # Third-party code: its error message may contain an address or a key.
        raise ProviderUnusable(f"{path!r}; it cannot be instantiated ({type(error).__name__})") from error
    for method in ("retrieve_context", "record_interaction"):
        if not callable(getattr(provider, method, None)):
            raise ProviderUnusable(f"{path!r}; it is not a memory provider (it has no {method})")
    return provider


failures: Counter[str] = Counter()
_pending: set["asyncio.Task[None]"] = set()


def record_later(scope: Scope, *, user: str, assistant: str, run_id: UUID, metadata: Mapping[str, Any]) -> None:
    """Report a run to every provider in the background, unless a side is blank. Raises ProviderUnusable."""
    if not user.strip() or not assistant.strip():
        return
    messages = ({"role": "user", "content": user}, {"role": "assistant", "content": assistant})
    for provider in providers():
        task = asyncio.create_task(_record(provider, scope, messages, run_id, metadata))
        _pending.add(task)  # the event loop keeps only weak references
        task.add_done_callback(_pending.discard)


async def _record(
    provider: MemoryProvider,
    scope: Scope,
    messages: Sequence[Mapping[str, Any]],
    run_id: UUID,
    metadata: Mapping[str, Any],
) -> None:
    try:
        async with asyncio.timeout(settings.PROVIDER_SECONDS):
            await provider.record_interaction(scope, messages, run_id, metadata)
    except Exception as error:  # noqa: BLE001 - third-party code; its errors never reach the client
        failures[provider.name] += 1
        logger.warning("provider %s did not record run %s: %s", provider.name, run_id, type(error).__name__)
