"""Schemathesis on the APIs: whatever is sent, the response is documented in the OpenAPI document and not a 5xx."""

from collections.abc import Iterator
from typing import Any

import pytest
import requests
from django.db import connection
from django.utils import timezone
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from config.api import api, v1
from gateway.api.documented import DocumentedAPI
from gateway.models import Agent, Run, UsageDay
from memories.artifacts.store import artifact_put
from memories.models import ChangeSet, Owner, Revision, WriteOrigin
from memories.services import Source
from reviews.models import ConsolidationRun
from tests.factories import key_make, memory_make, owner_make, review_make, session_make
from tests.lazy_module import LazyModule
from tests.live_server import LiveServer, serving

schemathesis: Any = LazyModule("schemathesis")
openapi_checks: Any = LazyModule("schemathesis.specs.openapi.checks")
failures: Any = LazyModule("schemathesis.core.failures")
CHECKS = ("status_code_conformance", "content_type_conformance", "response_schema_conformance")
# Valid and invalid requests per operation. Invalid ones take as long to generate as valid ones, and are refused in few
# ways. The answers do not depend on the database, so on a server a few of the native API's suffice: they show that it
# takes odd values.
EXAMPLES, FEWER_EXAMPLES = (8, 4), (3, 1)
# Operations that need a state which random requests do not reach may never succeed. Which ones these are varies with
# the schema, so their share is checked instead of their names.
MAX_NEVER_SUCCESSFUL = 0.5
QUIET = settings(
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(autouse=True)
def no_turn_left_running() -> None:
    """Override the suite's fixture: here, turns run in the server's loop and end with it."""


@pytest.fixture
def server(transactional_db: None, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[LiveServer]:
    monkeypatch.setattr("reviews.api.ingest.WAIT_SECONDS", 0.01)  # there is no worker
    with serving(monkeypatch, settings) as live_server:
        yield live_server


@pytest.fixture(autouse=True)
def _examples_from_the_schema_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep Hypothesis from drawing constants of the modules that happen to be imported, so that only the schema and the
    seed determine the examples."""
    monkeypatch.setattr(providers.HypothesisProvider, "_local_constants", Constants())
    providers.CONSTANTS_CACHE.cache.clear()
    yield
    providers.CONSTANTS_CACHE.cache.clear()


@pytest.fixture
def owner(server: LiveServer) -> Owner:
    return owner_make("bob", is_staff=True, is_superuser=True)


def rows_make(owner: Owner) -> dict[str, str]:
    """Create a row of the owner for every path parameter; return the parameters' values."""
    agent = Agent.objects.get(name="assistant")
    session = session_make(owner, agent, title="Tea")
    memory = memory_make(owner, f"Likes tea number {owner.memories.count()}.")
    revision = Revision.objects.get(memory=memory)
    run = Run.objects.create(owner=owner, session=session, turn=1, state=Run.State.COMPLETED, request_id="r")
    source = Source(actor=f"user:{owner.user_id}", origin=WriteOrigin.USER, kind=ChangeSet.Kind.EDIT)
    artifact_put(memory.book, "MEMORY.md", f"# Tea {memory.number}", source)
    write = {"key": "new-1", "target": "user", "category": "general", "keywords": [], "after": "Likes rum."}
    writes = [{"index": 0, "action": "add", "state": "waiting", **write}]
    waiting = {"session": session, "finished_at": timezone.now(), "writes": writes}
    review = review_make(memory.book, "awaiting_approval", **waiting)
    UsageDay.objects.get_or_create(owner=owner, day=timezone.now().date(), agent=agent.name, model="tea")
    consolidation = ConsolidationRun.objects.create(
        owner=owner, book=memory.book, book_epoch=1, trigger="request", state="completed", phase="done"
    )
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
    """Generate a request for the operation; in most cases its ids exist."""
    case = draw(operation.as_strategy(generation_mode=mode))
    for name in ("X-Daybook-User", "If-Match") if mode is schemathesis.GenerationMode.POSITIVE else ():
        case.headers.pop(name, None)  # the key is not trusted, and versions cannot be guessed
    for values in (case.path_parameters, case.body):
        if isinstance(values, dict):
            for name in values.keys() & rows.keys():
                if draw(st.integers(0, 2)):
                    values[name] = rows[name]
    return case


@pytest.mark.parametrize("assembled", [api, v1], ids=lambda assembled: assembled.urls_namespace)
def test_every_operation_gives_only_documented_responses(
    server: LiveServer, owner: Owner, assembled: DocumentedAPI
) -> None:
    schemathesis.serializer.alias("application/x-ndjson", "text/plain")
    checks = [schemathesis.checks.not_a_server_error, *(getattr(openapi_checks, name) for name in CHECKS)]
    schema = schemathesis.openapi.from_dict(assembled.get_openapi_schema())
    schema.config.update(base_url=server.address)
    schema.config.generation.update(with_security_parameters=False)  # otherwise most requests would fail authentication
    violations: dict[str, str] = {}
    answered: set[str] = set()
    fewer = assembled is api and connection.vendor != "sqlite"
    valid_examples, invalid_examples = FEWER_EXAMPLES if fewer else EXAMPLES
    rows: dict[str, str] = {}
    headers = {"Authorization": f"Bearer {key_make(owner)[1]}"}
    with requests.Session() as client:
        client.headers.update(headers)
        for found in schema.get_all_operations():
            operation = found.ok()
            for mode in schemathesis.GenerationMode:
                if mode is schemathesis.GenerationMode.NEGATIVE and not (operation.query or operation.body):
                    continue  # any text is a valid path
                rows = rows or rows_make(owner)
                valid = mode is schemathesis.GenerationMode.POSITIVE

                @seed(1)  # otherwise the source of this function would be the seed
                @settings(QUIET, max_examples=valid_examples if valid else invalid_examples)
                @given(cases(operation, mode, rows))
                def answer(case: Any) -> None:
                    response = case.call_and_validate(session=client, checks=checks, headers=headers)
                    if response.status_code < 300:
                        answered.add(case.operation.definition.raw["operationId"])

                try:
                    answer()
                except failures.FailureGroup as several:
                    violations[f"{operation.label} {mode}"] = "\n".join(map(str, several.exceptions))
                if operation.method.upper() != "GET":
                    rows = {}  # they may be changed or deleted
    assert violations == {}
    known = {found.ok().definition.raw["operationId"] for found in schema.get_all_operations()}
    assert len(known - answered) <= len(known) * MAX_NEVER_SUCCESSFUL, known - answered


@pytest.mark.parametrize("assembled", [api, v1], ids=lambda assembled: assembled.urls_namespace)
def test_all_operations_document_their_errors_with_the_same_schema(assembled: DocumentedAPI) -> None:
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


def test_streams_are_documented_as_streams() -> None:
    paths = api.get_openapi_schema()["paths"]
    turn = "/api/sessions/{session_id}/turns"
    assert {*paths[turn]["post"]["responses"][200]["content"]} == {"application/json", "text/event-stream"}
    assert "text/event-stream" in paths[f"{turn}/{{turn_id}}/events"]["get"]["responses"][200]["content"]
    assert "application/x-ndjson" in paths["/api/export"]["get"]["responses"][200]["content"]
    assert "application/x-ndjson" in paths["/api/import"]["post"]["requestBody"]["content"]
