"""Schemathesis over the APIs: whatever is sent, the answer is one that the OpenAPI document names, and no 5xx"""

from collections.abc import Iterator
from typing import Any

import pytest
import requests
from django.utils import timezone
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from config.api import api, v1
from gateway.api.documented import DocumentedAPI
from gateway.models import Agent, Run, UsageDay
from memories.artifacts.store import artifact_put
from memories.models import ChangeSet, Owner, Revision, WriteOrigin
from memories.services import Source
from reviews.models import ConsolidationRun, ReviewRun
from tests.factories import key_make, memory_make, owner_make, session_make
from tests.lazy_module import LazyModule
from tests.live_server import LiveServer, serving

schemathesis: Any = LazyModule("schemathesis")
openapi_checks: Any = LazyModule("schemathesis.specs.openapi.checks")
failures: Any = LazyModule("schemathesis.core.failures")
CHECKS = ("status_code_conformance", "content_type_conformance", "response_schema_conformance")
# Of each operation. What is invalid takes as long to make up as what is valid, and is refused in few ways.
EXAMPLES, INVALID_EXAMPLES = 8, 4
# What needs a state that chance does not bring about may go without an answer of success. Which operations these are
# varies with the schema, therefore their share is held and not their names.
NEVER_ANSWERED_SHARE = 0.5
QUIET = settings(
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(autouse=True)
def no_turn_left_running() -> None:
    """Instead of the suite's own: turns live in the server's loop here, and end with it."""


@pytest.fixture
def server(transactional_db: None, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[LiveServer]:
    monkeypatch.setattr("reviews.api.ingest.WAIT_SECONDS", 0.01)  # there is no worker
    with serving(monkeypatch, settings) as live_server:
        yield live_server


@pytest.fixture
def owner(server: LiveServer) -> Owner:
    return owner_make("bob", is_staff=True, is_superuser=True)


def rows_make(owner: Owner) -> dict[str, str]:
    """New rows of the owner, one for every parameter of a path."""
    agent = Agent.objects.get(name="assistant")
    session = session_make(owner, agent, title="Tea")
    memory = memory_make(owner, f"Likes tea number {owner.memories.count()}.")
    revision = Revision.objects.get(memory=memory)
    run = Run.objects.create(owner=owner, session=session, turn=1, state=Run.State.COMPLETED, request_id="r")
    source = Source(actor=f"user:{owner.user_id}", origin=WriteOrigin.USER, kind=ChangeSet.Kind.EDIT)
    artifact_put(memory.book, "MEMORY.md", f"# Tea {memory.number}", source)
    shared: dict[str, Any] = {"owner": owner, "book": memory.book, "book_epoch": 1, "trigger": "request"}
    write = {"key": "new-1", "target": "user", "category": "general", "keywords": [], "after": "Likes rum."}
    review = ReviewRun.objects.create(
        **shared,
        session=session,
        state=ReviewRun.State.AWAITING_APPROVAL,
        first_seq=1,
        last_seq=2,
        agent_name=agent.name,
        finished_at=timezone.now(),
        writes=[{"index": 0, "action": "add", "state": "waiting", **write}],
    )
    UsageDay.objects.get_or_create(owner=owner, day=timezone.now().date(), agent=agent.name, model="tea")
    consolidation = ConsolidationRun.objects.create(**shared, state="completed", phase="done")
    return {
        "session_id": str(session.pk),
        "turn_id": str(run.pk),
        "memory_id": str(memory.number),
        "change_set": str(revision.change_set_id),
        "name": memory.book.name,
        "path": "MEMORY.md",
        "review_id": str(review.pk),
        "proposal_id": f"{review.pk}-0",
        "run_id": str(consolidation.pk),
        "revision": str(revision.pk),
        "agent": agent.name,
        "model": agent.name,
        "book": memory.book.name,
        "key_id": str(key_make(owner)[0].pk),
    }


@st.composite
def cases(draw: st.DrawFn, operation: Any, mode: Any, rows: dict[str, str]) -> Any:
    """A request of the operation; in most, what is named is really there."""
    case = draw(operation.as_strategy(generation_mode=mode))
    for name in ("X-Daybook-User", "If-Match") if mode is schemathesis.GenerationMode.POSITIVE else ():
        case.headers.pop(name, None)  # this key is nobody's but its owner's, and versions are not guessed
    for given_values in (case.path_parameters, case.body):
        if isinstance(given_values, dict):
            for name in given_values.keys() & rows.keys():
                if draw(st.integers(0, 2)):
                    given_values[name] = rows[name]
    return case


@pytest.mark.parametrize("assembled", [api, v1], ids=lambda assembled: assembled.urls_namespace)
def test_every_operation_answers_only_what_is_documented(
    server: LiveServer, owner: Owner, assembled: DocumentedAPI
) -> None:
    schemathesis.serializer.alias("application/x-ndjson", "text/plain")
    checks = [schemathesis.checks.not_a_server_error, *(getattr(openapi_checks, name) for name in CHECKS)]
    schema = schemathesis.openapi.from_dict(assembled.get_openapi_schema())
    schema.config.update(base_url=server.address)
    schema.config.generation.update(with_security_parameters=False)  # or most requests would end at their key
    wrong: dict[str, str] = {}
    answered: set[str] = set()
    headers = {"Authorization": f"Bearer {key_make(owner)[1]}"}
    with requests.Session() as client:
        client.headers.update(headers)
        for found in schema.get_all_operations():
            operation = found.ok()
            for mode in schemathesis.GenerationMode:
                if mode is schemathesis.GenerationMode.NEGATIVE and not (operation.query or operation.body):
                    continue  # any text is a valid path
                rows = rows_make(owner)
                valid = mode is schemathesis.GenerationMode.POSITIVE

                @settings(QUIET, max_examples=EXAMPLES if valid else INVALID_EXAMPLES)
                @given(cases(operation, mode, rows))
                def answer(case: Any) -> None:
                    response = case.call_and_validate(session=client, checks=checks, headers=headers)
                    if response.status_code < 300:
                        answered.add(case.operation.definition.raw["operationId"])

                try:
                    answer()
                except failures.FailureGroup as several:
                    wrong[f"{operation.label} {mode}"] = "\n".join(map(str, several.exceptions))
    assert wrong == {}
    known = {found.ok().definition.raw["operationId"] for found in schema.get_all_operations()}
    assert len(known - answered) <= len(known) * NEVER_ANSWERED_SHARE, known - answered


@pytest.mark.parametrize("assembled", [api, v1], ids=lambda assembled: assembled.urls_namespace)
def test_every_operation_documents_its_errors_with_one_schema(assembled: DocumentedAPI) -> None:
    document = assembled.get_openapi_schema()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert {401, 403, 429, 503} <= operation["responses"].keys(), (method, path)
            assert (404 in operation["responses"]) >= ("{" in path), (method, path)
    schemas = {
        response["content"]["application/json"]["schema"]["$ref"]
        for response in document["components"]["responses"].values()
    }
    assert schemas == {"#/components/schemas/Error"}


def test_what_streams_is_documented_as_a_stream() -> None:
    paths = api.get_openapi_schema()["paths"]
    turn = "/api/sessions/{session_id}/turns"
    assert {*paths[turn]["post"]["responses"][200]["content"]} == {"application/json", "text/event-stream"}
    assert "text/event-stream" in paths[f"{turn}/{{turn_id}}/events"]["get"]["responses"][200]["content"]
    assert "application/x-ndjson" in paths["/api/export"]["get"]["responses"][200]["content"]
    assert "application/x-ndjson" in paths["/api/import"]["post"]["requestBody"]["content"]
