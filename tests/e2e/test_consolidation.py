"""Consolidation by real workers with a scripted upstream: sharing the sessions, kills in each phase, a person's edit,
and the Memory Guidance in the next session. The processes share the test database."""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from gateway.models import Agent, Run, Session
from gateway.services import configuration_save
from memories.models import Artifact, ArtifactRevision, Lease, Owner
from reviews.models import ConsolidationRun, Extraction
from tests import warm_process
from tests.e2e.http_user import KeyUser
from tests.e2e.running import MANAGE, environment, manage, running_daybook
from tests.factories import agent_make, key_make, owner_make
from tests.reviews.consolidation.answering_model import SESSION, extraction, synthesis
from tests.reviews.consolidation.rows import document, settings_make, talk
from tests.upstream_server import UpstreamServer
from tests.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
READER, WRITER = "reader", "writer"
Worker = warm_process.Program


@pytest.fixture
def start_worker(home: Path, shared: dict[str, str]) -> Iterator[Callable[[], Worker]]:
    """Start a worker (queue and sweeps) in its own process group. Workers that still run after the test are kill."""
    started: list[Worker] = []

    def start() -> Worker:
        started.append(warm_process.start([str(MANAGE), "worker"], env=environment(home, shared), new_session=True))
        return started[-1]

    yield start
    for worker in started:
        kill(worker)


@pytest.fixture
def owner() -> Owner:
    return owner_make("alice")


@pytest.fixture
def plain_agent(owner: Owner) -> Agent:
    agent = agent_make(model="chat")
    configuration_save("model_roles", {"default": READER, "smol": WRITER})
    settings_make(min_rollout_idle_hours=12, lease_seconds=2, retry_seconds=0.2)
    agent.refresh_from_db()
    return agent


def extraction_steps(number: int, **more: Any) -> list[dict[str, Any]]:
    """Return steps for that many extractions."""
    return [{"model": READER, "text": extraction("- Deploys with make ship.", "About deploying."), **more}] * number


def synthesis_step(memory_md: str, summary: str = "Deploys with make ship.", **more: Any) -> dict[str, Any]:
    """Return a step for a synthesis."""
    return {"model": WRITER, "text": synthesis(memory_md, summary, ship="1. make ship"), **more}


def extraction_counts(upstream: UpstreamServer) -> Counter[str]:
    """Return how often each session was sent for extraction."""
    sent = [request["body"]["messages"][-1]["content"] for request in upstream.requests(READER)]
    return Counter(match[1] for text in sent if (match := SESSION.search(text)))


def wait_for_run(within: float = 60) -> ConsolidationRun:
    """Wait for the newest run to finish and return it."""

    def closed_run() -> ConsolidationRun | None:
        run = ConsolidationRun.objects.order_by("-id").first()
        return run if run and run.state not in ConsolidationRun.OPEN else None

    return eventually(closed_run, within=within, description="the end of the consolidation")


def kill(worker: Worker) -> None:
    """Send SIGKILL to a worker and all its processes."""
    with suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.wait(20)


def test_two_workers_read_each_session_once(
    owner: Owner,
    plain_agent: Agent,
    upstream: UpstreamServer,
    home: Path,
    shared: dict[str, str],
    start_worker: Callable[[], Worker],
) -> None:
    settings_make(min_rollout_idle_hours=12, lease_seconds=2, retry_seconds=0.2, max_rollouts_per_startup=24)
    eligible = [talk(owner, f"Fact {n}", agent=plain_agent, hours_ago=13 + n) for n in range(30)]
    for hours_ago in (1, 11.5, 31 * 24):
        talk(owner, agent=plain_agent, hours_ago=hours_ago)
    talk(owner, agent=plain_agent, temporary=True)
    busy = talk(owner, agent=plain_agent)
    later = timezone.now() + timedelta(seconds=100)  # a later end would count as that of a clock that was ahead
    Run.objects.create(owner=owner, session=busy, turn=2, request_id="r", lease_expires_at=later)
    talk(owner, agent=agent_make("other", book="other"), hours_ago=11)
    upstream.script(*extraction_steps(30), synthesis_step("# First"), synthesis_step("# Second"))

    start_worker()
    start_worker()
    first = wait_for_run()
    assert (first.state, first.trigger, first.sessions_done) == ("completed", "startup", 24)
    newest = {str(session.pk) for session in eligible[:24]}
    assert extraction_counts(upstream) == Counter(newest)
    assert document(owner, "MEMORY.md") == "# First"
    assert len(upstream.requests(WRITER)) == 1

    followed = manage(home, "consolidate", "--owner", "alice", "--book", "main", "--wait", env=shared)
    assert followed.returncode == 0, followed.stderr
    assert followed.stdout.splitlines()[-1].endswith("6 of 6 sessions, Completed")
    assert extraction_counts(upstream) == Counter({str(session.pk) for session in eligible})
    assert document(owner, "MEMORY.md") == "# Second"
    assert ConsolidationRun.objects.count() == 2


def test_a_worker_killed_while_reading_loses_no_session(
    owner: Owner, plain_agent: Agent, upstream: UpstreamServer, start_worker: Callable[[], Worker]
) -> None:
    settings_make(concurrency=2, lease_seconds=2, retry_seconds=0.2)
    sessions = [talk(owner, f"Fact {n}", agent=plain_agent, hours_ago=n + 1) for n in range(12)]
    upstream.script(*extraction_steps(5), *extraction_steps(2, hang="before"))
    worker = start_worker()
    eventually(lambda: len(upstream.requests(READER)) == 7, within=30)
    eventually(lambda: Extraction.objects.filter(state="extracted").count() == 5, within=30)
    kill(worker)
    assert not Artifact.objects.exists()
    upstream.script(*extraction_steps(7), synthesis_step("# Whole"))
    start_worker()
    run = wait_for_run()
    assert (run.state, run.sessions_done, run.attempts) == ("completed", 12, 0)
    times = extraction_counts(upstream)
    assert set(times) == {str(session.pk) for session in sessions}
    assert sorted(times.values()) == [1] * 10 + [2] * 2, "only interrupted extractions are repeated"
    assert document(owner, "MEMORY.md") == "# Whole"
    assert not Lease.objects.exists()


def test_a_worker_killed_while_writing_leaves_no_partial_documents(
    owner: Owner, plain_agent: Agent, upstream: UpstreamServer, start_worker: Callable[[], Worker]
) -> None:
    talk(owner, agent=plain_agent)
    upstream.script(*extraction_steps(1), synthesis_step("# Lost", hang="before"))
    worker = start_worker()
    eventually(lambda: upstream.requests(WRITER), within=30)
    kill(worker)
    assert not Artifact.objects.exists()
    upstream.script(synthesis_step("# Whole"))
    start_worker()
    assert wait_for_run().state == "completed"
    assert len(upstream.requests(READER)) == 1, "extractions are not repeated"
    paths = set(Artifact.objects.values_list("path", flat=True))
    assert paths == {"MEMORY.md", "memory_summary.md", "skills/ship/SKILL.md"}
    assert ArtifactRevision.objects.values("change_set").distinct().count() == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_the_run_of_a_worker_that_ended_is_resumed_before_its_lease_expires(
    owner: Owner,
    plain_agent: Agent,
    upstream: UpstreamServer,
    start_worker: Callable[[], Worker],
    number: signal.Signals,
) -> None:
    if number == signal.SIGKILL and connection.vendor != "sqlite":
        pytest.skip("with a server database the worker may be on another machine")
    settings_make(lease_seconds=120)
    talk(owner, agent=plain_agent)
    upstream.script(*extraction_steps(1, hang="before"))
    worker = start_worker()
    eventually(lambda: upstream.requests(READER), within=30)
    worker.send_signal(number)
    worker.wait(20)
    upstream.script(*extraction_steps(1), synthesis_step("# Whole"))
    start_worker()
    assert wait_for_run(within=30).state == "completed"


def test_a_persons_line_survives_and_the_next_session_gets_the_guidance(
    owner: Owner, plain_agent: Agent, upstream: UpstreamServer, home: Path, shared: dict[str, str]
) -> None:
    talk(owner, agent=plain_agent)
    key = key_make(owner)[1]
    upstream.script(*extraction_steps(1), synthesis_step("# Memory\n- Deploys with make ship."))
    with running_daybook(home, shared) as daybook:
        wait_for_run()
        alice = KeyUser(daybook.address, key)
        status, shown = alice.call("GET", "/api/books/main/artifacts/MEMORY.md")
        assert (status, shown["write_origin"]) == (200, "consolidation")
        edited = f"{shown['content']}\n- Never deploys on Fridays."
        assert alice.call("PUT", "/api/books/main/artifacts/MEMORY.md", {"content": edited})[0] == 200

        upstream.script(synthesis_step("# Memory\n- Deploys with make release.", "Deploys with make release."))
        status, run = alice.call("POST", "/api/consolidations", {"book": "main"})
        assert (status, run["trigger"]) == (202, "request")
        eventually(lambda: alice.call("GET", f"/api/consolidations/{run['id']}")[1]["state"] == "completed", within=30)
        sent = upstream.requests(WRITER)[-1]["body"]["messages"][-1]["content"]
        assert "- Never deploys on Fridays." in sent
        lines = alice.call("GET", "/api/books/main/artifacts/MEMORY.md")[1]["content"].splitlines()
        assert {"- Never deploys on Fridays.", "- Deploys with make release."} <= set(lines)

        _, session = alice.call("POST", "/api/sessions", {"agent": plain_agent.name})
        upstream.script({"model": "chat", "text": "Hello."})
        status, _ = alice.call("POST", f"/api/sessions/{session['id']}/turns", {"content": "Hi"})
        assert status == 200
        system = upstream.requests("chat")[-1]["body"]["messages"][0]["content"]
        assert "# Memory Guidance" in system
        assert "<memory_summary>\nDeploys with make release.\n</memory_summary>" in system

        before = len(upstream.requests())
        shown = alice.call("POST", f"/api/sessions/{session['id']}/turns", {"content": "/memory view"})[1]["content"]
        assert "Deploys with make release." in shown
        assert len(upstream.requests()) == before
        assert Session.objects.get(pk=session["id"]).turns == 1
