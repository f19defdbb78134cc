"""memories.providers: additional providers are asked during recall and informed after each completed run."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps

from config.environment import ConfigurationError
from gateway.models import Session
from memories import providers
from memories.providers import MemoryProvider, ProviderUnusable, Scope
from tests.conftest import Api
from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.any_database


class Notebook(MemoryProvider):
    """Records the interactions that it is informed about."""

    name = "notebook"
    interactions: list[tuple[Scope, tuple[str, ...], UUID]] = []

    async def retrieve_context(self, scope: Scope, query: str) -> Sequence[str]:
        return ["The notebook says <hello>."]

    async def record_interaction(
        self, scope: Scope, messages: Sequence[Mapping[str, Any]], run_id: UUID, metadata: Mapping[str, Any]
    ) -> None:
        self.interactions.append((scope, tuple(str(message["content"]) for message in messages), run_id))


class Broken(MemoryProvider):
    name = "broken"

    async def retrieve_context(self, scope: Scope, query: str) -> Sequence[str]:
        raise RuntimeError("no")

    async def record_interaction(
        self, scope: Scope, messages: Sequence[Mapping[str, Any]], run_id: UUID, metadata: Mapping[str, Any]
    ) -> None:
        raise RuntimeError("no")


class Slow(MemoryProvider):
    name = "slow"

    async def retrieve_context(self, scope: Scope, query: str) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    async def record_interaction(
        self, scope: Scope, messages: Sequence[Mapping[str, Any]], run_id: UUID, metadata: Mapping[str, Any]
    ) -> None:
        await asyncio.Event().wait()


@pytest.fixture(autouse=True)
def _configured(settings: Any) -> None:
    Notebook.interactions.clear()
    providers.failures.clear()
    settings.MEMORY_PROVIDERS = [f"{__name__}.{name}" for name in ("Notebook", "Broken", "Slow")]
    settings.PROVIDER_SECONDS = settings.RECALL_LANE_SECONDS = 0.1


async def test_another_provider_is_asked_and_informed(alice_api: Api, session: Session, model: ScriptedModel) -> None:
    model.script("Hello.")
    _, turn = await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": "Hi"}, x_request_id="corr-1")
    await asyncio.gather(*providers._pending)
    sent = next(m["content"] for m in model.calls[0].messages if "<memories>" in m["content"])
    assert '<memory id="notebook:1" category="general">The notebook says &lt;hello&gt;.</memory>' in sent
    [(scope, texts, run_id)] = Notebook.interactions
    assert (scope.request_id, scope.session_id, texts) == ("corr-1", session.pk, ("Hi", "Hello."))
    assert str(run_id) == turn["id"]


async def test_provider_failures_are_counted_and_hidden_from_the_client(
    alice_api: Api, session: Session, model: ScriptedModel
) -> None:
    model.script("Hello.")
    status, turn = await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": "Hi"})
    await asyncio.gather(*providers._pending)
    assert (status, turn["content"]) == (200, "Hello.")
    assert providers.failures == {"broken": 1, "slow": 1}


async def test_providers_are_not_used_in_temporary_sessions(
    alice_api: Api, agent: object, model: ScriptedModel
) -> None:
    model.script("Hello.")
    _, made = await alice_api.post("/api/sessions", {"agent": "assistant", "temporary": True})
    await alice_api.post(f"/api/sessions/{made['id']}/turns", {"content": "Hi"})
    await asyncio.gather(*providers._pending)
    assert Notebook.interactions == []
    assert "notebook" not in str(model.calls[0].messages)


async def test_providers_are_not_informed_about_blank_answers(
    alice_api: Api, session: Session, model: ScriptedModel
) -> None:
    model.script(" ")
    await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": "Hi"})
    await asyncio.gather(*providers._pending)
    assert Notebook.interactions == []


# ---- unusable providers ----------------------------------------------------------------------------------------------


class Unconstructable(MemoryProvider):
    name = "unconstructable"

    def __init__(self) -> None:
        raise RuntimeError("postgres://me:secret@example.org")


class Reserved(MemoryProvider):
    name = "long_term"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("no.such.Provider", "it cannot be imported (No module named 'no')"),
        (f"{__name__}.Missing", "it cannot be imported"),
        ("Notebook", "it cannot be imported"),
        (f"{__name__}.Unconstructable", "it cannot be instantiated (RuntimeError)"),
        (f"{__name__}.Reserved", "its name 'long_term' is empty, taken or reserved"),
        ("pathlib.Path", "it is not a memory provider (it has no retrieve_context)"),
    ],
)
def test_an_unusable_provider_is_refused_in_one_line(settings: Any, path: str, why: str) -> None:
    settings.MEMORY_PROVIDERS = [path]
    with pytest.raises(ProviderUnusable) as refused:
        providers.providers()
    assert str(refused.value).startswith(f"{path!r}; {why}")
    assert "\n" not in str(refused.value)
    assert "secret" not in str(refused.value)


def test_two_providers_with_the_same_name_are_refused(settings: Any) -> None:
    settings.MEMORY_PROVIDERS = [f"{__name__}.Notebook"] * 2
    with pytest.raises(ProviderUnusable, match="its name 'notebook' is empty, taken or reserved"):
        providers.providers()


def test_a_process_does_not_start_with_an_unusable_provider(settings: Any) -> None:
    settings.MEMORY_PROVIDERS = ["no.such.Provider"]
    with pytest.raises(ConfigurationError, match=r"^DAYBOOK_MEMORY_PROVIDERS is 'no.such.Provider'; it cannot be imp"):
        apps.get_app_config("config").ready()
