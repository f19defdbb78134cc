"""Other memory providers beside the native one: named in DAYBOOK_MEMORY_PROVIDERS by dotted path, asked in a lane of
their own, and informed of each completed run after its answer is delivered. The native provider needs none of this: its
two lanes are memories.recall.two_lanes, and its record of a run is a row of the closing transaction
(memories.recall.threads)."""

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
"""What a run's trace and the metrics call parts of our own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose memory, in which conversation; `request_id` is the same in every lane of one run."""

    owner_id: UUID
    book: str
    session_id: UUID
    request_id: str


class MemoryProvider:
    """What a provider implements. Both methods may be left as they are."""

    name = "provider"

    async def retrieve_context(self, scope: Scope, query: str) -> Sequence[str]:
        """Return texts that may help to answer `query`, best first; each is cut to 512 bytes. It may raise, and what is
        not there at the lane's deadline is not used."""
        return ()

    async def record_interaction(
        self, scope: Scope, messages: Sequence[Mapping[str, Any]], run_id: UUID, metadata: Mapping[str, Any]
    ) -> None:
        """Take note of a completed run: its user message and its answer as `{role, content}`. Called once per run; a
        failure is not repeated."""
        return None


class ProviderUnusable(Exception):
    """A configured provider that cannot be used. The message is one line: the path, and why."""


def providers() -> tuple[MemoryProvider, ...]:
    """Return the configured providers, one instance per process. Raises ProviderUnusable; config.apps calls this at
    start, so that a wrong path stops the process there."""
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
        # Somebody else's code; the text of its error may hold an address or a key.
        raise ProviderUnusable(f"{path!r}; it cannot be made ({type(error).__name__})") from error
    for method in ("retrieve_context", "record_interaction"):
        if not callable(getattr(provider, method, None)):
            raise ProviderUnusable(f"{path!r}; it is not a memory provider (it has no {method})")
    return provider


failures: Counter[str] = Counter()
_pending: set["asyncio.Task[None]"] = set()


def record_later(scope: Scope, *, user: str, assistant: str, run_id: UUID, metadata: Mapping[str, Any]) -> None:
    """Report a completed run to every provider in the background. Blank exchanges are not reported. Raises
    ProviderUnusable."""
    if not user.strip() or not assistant.strip():
        return
    messages = ({"role": "user", "content": user}, {"role": "assistant", "content": assistant})
    for provider in providers():
        task = asyncio.create_task(_record(provider, scope, messages, run_id, metadata))
        _pending.add(task)  # the loop itself keeps only weak references
        task.add_done_callback(_pending.discard)


async def recorded() -> None:
    """Wait until all reports so far are delivered or given up (tests, shutdown)."""
    await asyncio.gather(*_pending, return_exceptions=True)


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
    except Exception as error:  # noqa: BLE001 - somebody else's code; it never reaches the client
        failures[provider.name] += 1
        logger.warning("provider %s did not record run %s: %s", provider.name, run_id, type(error).__name__)
