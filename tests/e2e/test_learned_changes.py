"""Request changes learned from an upstream's refusals are shared between the real web and worker processes and survive
a restart."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.http_user import KeyUser
from tests.e2e.running import RunningDaybook, running_daybook
from tests.upstream_server import UpstreamServer
from tests.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.any_database]
AGENTS = """
agents: {assistant: {model: talker, memory_review_model: reviewer, memory_review_interval: 1}}
upstreams: {default: {options: {drop: [top_k]}}}
"""
KEY = "dbk_" + "k" * 43
SEED = {"status": 400, "error": "Unknown parameter: 'seed'."}
EFFORT = {"status": 400, "error": "To use function tools set reasoning_effort to 'none'."}


def learned(home: Path) -> set[tuple[str, str]]:
    """Return the learned changes in the database as (model, parameter)."""
    with closing(sqlite3.connect(home / "daybook.sqlite3")) as database:
        return set(database.execute("SELECT model, parameter FROM gateway_learnedchange"))


def turn(daybook: RunningDaybook) -> None:
    """Send a request with parameters that the upstream refuses."""
    body = {"model": "assistant", "messages": [{"role": "user", "content": "Hi"}], "seed": 7, "top_k": 20}
    status, answer = KeyUser(daybook.address, KEY).call("POST", "/v1/chat/completions", body)
    assert status == 200, answer


def sent(upstream: UpstreamServer, model: str) -> list[dict[str, Any]]:
    """Return the requests for a model."""
    return [request["body"] for request in upstream.requests(model)]


def test_what_web_and_worker_learned_survives_a_restart(
    upstream: UpstreamServer, home: Path, storage: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "agents.yaml").write_text(AGENTS)
    env = storage | {
        "OPENAI_BASE_URL": upstream.url,
        "DAYBOOK_AGENTS": str(tmp_path / "agents.yaml"),
        "DAYBOOK_API_KEY": KEY,
    }
    upstream.script({**SEED, "model": "talker"}, {**EFFORT, "model": "reviewer"})
    with running_daybook(home, env) as daybook:
        turn(daybook)
        assert [set(body) & {"seed", "top_k"} for body in sent(upstream, "talker")] == [{"seed"}, set()]
        both = {("talker", "seed"), ("reviewer", "reasoning_effort")}
        eventually(lambda: learned(home) == both, within=30, description="both processes' rows")
    with running_daybook(home, env) as daybook:
        turn(daybook)
        assert [set(body) & {"seed", "top_k"} for body in sent(upstream, "talker")[2:]] == [set()]
        eventually(lambda: len(sent(upstream, "reviewer")) == 3, within=30, description="the second review")
        assert [body.get("reasoning_effort") for body in sent(upstream, "reviewer")] == [None, "none", "none"]
