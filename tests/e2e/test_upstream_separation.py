"""No text of a conversation on the upstream `local` ever reaches another upstream: two script_background_jobs
upstreams, the real processes, and every background job. The processes share the test database."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.models import Agent, Compaction
from gateway.services import configuration_save
from memories.models import Memory, MemoryVector, Owner
from reviews.models import ConsolidationRun, ReviewRun
from tests.e2e.http_user import KeyUser
from tests.e2e.running import running_daybook
from tests.factories import agent_make, key_make, memory_make, owner_make
from tests.reviews.consolidation.answering_model import extraction, synthesis
from tests.reviews.consolidation.rows import document, settings_make, talk
from tests.upstream_server import UpstreamServer, serving_upstream
from tests.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
BIRD, FISH = "zebrafinch", "goldfish"
# Phrases from the prompts of the background jobs.
KEYWORDS, NOTES, COMPACTION, REVIEW = "You find search words", "You make notes findable", "You condense", "add_memory"
READING, WRITING = "The record of session", "You keep the lasting documents"


@pytest.fixture
def local() -> Iterator[UpstreamServer]:
    """The second model server."""
    with serving_upstream() as server:
        yield server


@pytest.fixture
def owner() -> Owner:
    return owner_make("alice")


def agents(**settings: Any) -> tuple[Agent, Agent]:
    """Create an agent on `local` and one on the default upstream, with all background jobs."""
    common: dict[str, Any] = {
        "inject_memories_strategy": "llm",
        "frozen_char_limit": 0,
        "memory_review_interval": 1,
        "memory_review_timeout": 60,
        "context_token_limit": 2000,
        **settings,
    }
    private = agent_make("private", upstream="local", model="llama", book="private", **common)
    return private, agent_make("public", model="cloud-chat", book="public", **common)


def script_background_jobs(server: UpstreamServer, animal: str) -> None:
    """Script the answers for an extraction, a synthesis, search keywords and a review."""
    add = {"name": "add_memory", "arguments": {"content": f"Keeps a {animal}.", "target": "user"}}
    server.script(
        {"contains": READING, "text": extraction(f"- The {animal} is called Otto.", f"About a {animal}.")},
        {"contains": WRITING, "text": synthesis(f"# Memory\n- The {animal} is called Otto.", f"A {animal}.")},
        {"contains": NOTES, "text": '{"1": ["pet", "animal"], "2": ["pet", "animal"]}'},
        {"contains": "User turns that were not reviewed", "calls": [add]},
    )


def sent(server: UpstreamServer, words: str) -> list[str]:
    """Return the requests that contain these words."""
    return [text for row in server.requests() if words in (text := json.dumps(row["body"]))]


def test_no_word_of_a_local_conversation_reaches_the_default_upstream(
    owner: Owner, upstream: UpstreamServer, local: UpstreamServer, home: Path, shared: dict[str, str]
) -> None:
    settings_make(min_rollout_idle_hours=12, retry_seconds=0.2, parallel_runs=2)
    configuration_save("model_roles", {"default": "cloud-reader", "smol": "cloud-writer"})
    animals = {"private": BIRD, "public": FISH}
    for agent in agents(user_char_limit=0, memory_char_limit=0):
        memory_make(owner, f"Feeds the {animals[agent.name]} seeds.", book=agent.book)
        talk(owner, f"My {animals[agent.name]} is called Otto.", agent=agent)
    for server, animal in ((local, BIRD), (upstream, FISH)):
        script_background_jobs(server, animal)
    key = key_make(owner)[1]
    env = shared | {
        "DAYBOOK_UPSTREAM_LOCAL_URL": local.url,
        "DAYBOOK_EMBEDDING_MODEL": "embedder",
        "DAYBOOK_MODEL": "cloud-model",
    }
    with running_daybook(home, env) as daybook:
        user = KeyUser(daybook.address, key)
        for name, animal in animals.items():
            _, session = user.call("POST", "/api/sessions", {"agent": name})
            for _ in range(4):
                content = " ".join([f"The {animal} sings in the morning."] * 150)
                status, turn = user.call("POST", f"/api/sessions/{session['id']}/turns", {"content": content})
                assert status == 200, turn

        def still_separate(done: bool) -> bool:
            assert sent(upstream, BIRD) == []
            return done

        runs = ConsolidationRun.objects.filter(state="completed").values("book").distinct()
        eventually(lambda: still_separate(runs.count() == 2), within=60, description="two consolidations")
        with_keywords = Memory.objects.filter(content__startswith="Feeds").exclude(keywords=[])
        eventually(
            lambda: still_separate(with_keywords.count() == 2), within=60, description="search keywords in both books"
        )
        eventually(lambda: Compaction.objects.values("session").distinct().count() == 2, within=60)
        reviewed = ReviewRun.objects.exclude(state__in=("scheduled", "running")).values("session").distinct()
        eventually(lambda: reviewed.count() == 2, within=60, description="reviews of both sessions")
        eventually(lambda: MemoryVector.objects.filter(book__name="public").exists(), within=60, description="vectors")

    for kind in (KEYWORDS, NOTES, COMPACTION, REVIEW, READING, WRITING):
        assert any(BIRD in text for text in sent(local, kind)), f"{kind} was not sent to the agent's upstream"
        assert any(FISH in text for text in sent(upstream, kind)), f"{kind} was not sent to the default upstream"
    assert "zebrafinch" in document(owner, "MEMORY.md", "private")
    assert sent(upstream, BIRD) == []
    assert sent(local, FISH) == []
    assert not MemoryVector.objects.filter(book__name="private").exists(), (
        "without a setting, private books are not embedded"
    )
