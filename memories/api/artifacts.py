"""/api/books/{name}/artifacts: read and edit the documents of a book."""

from typing import Annotated, Any

from django.http import HttpResponse
from django.urls import register_converter
from django.urls.converters import StringConverter
from ninja import Router
from pydantic import Field

from memories.api import answers
from memories.api.answers import documented, list_of
from memories.api.bodies import Body
from memories.api.memories import edit_source, expected_version, if_match, with_etag
from memories.api.operations import reading
from memories.api.serializers import artifact_json
from memories.artifacts.cleaning import MAX_DOCUMENT
from memories.artifacts.store import artifact_get, artifact_put, clean_document, live_artifacts
from memories.caller import ApiRequest, Caller
from memories.database.access import in_thread
from memories.limits import BOOK_NAME
from memories.pagination import page_json
from memories.selectors import book_get, book_named
from memories.services import book_get_or_create
from memories.verdicts import scan_document_ahead

router = Router(tags=["Documents"])


class _BookName(StringConverter):
    """A book's name in an address, which may contain slashes. The limit keeps the time to match a path linear."""

    regex = f".{{1,{BOOK_NAME}}}?"


register_converter(_BookName, "book")


class ArtifactIn(Body, json_schema_extra={"examples": [{"content": "# Kitchen\n\n- Cooks without meat."}]}):
    # Longer content is answered with 413, so the limit is only documented here.
    content: Annotated[str, Field(json_schema_extra={"maxLength": MAX_DOCUMENT})]


@router.get("/books/{book:name}/artifacts", response=list_of(answers.Artifact, "The documents of a book, by path."))
@reading
def artifact_list(request: ApiRequest, name: str) -> dict[str, Any]:
    """List the documents of a book, by path."""
    owner_id = request.auth.owner_id
    request.auth.limits.require_books([name])
    # A book is created at its first use; before that it counts as empty.
    book = book_named(owner_id, name)
    return page_json([artifact_json(row) for row in live_artifacts(owner_id, book.pk)] if book else [])


@router.get("/books/{book:name}/artifacts/{path:path}", response=documented(answers.Artifact))
@reading
def artifact_read(request: ApiRequest, name: str, path: str, response: HttpResponse) -> dict[str, Any]:
    """Return a document, with its ETag."""
    owner_id = request.auth.owner_id
    request.auth.limits.require_books([name])
    return with_etag(response, artifact_json(artifact_get(owner_id, book_get(owner_id, name).pk, path)))


@router.put("/books/{book:name}/artifacts/{path:path}", response=documented(answers.Artifact))
async def artifact_write(
    request: ApiRequest, name: str, path: str, body: ArtifactIn, response: HttpResponse
) -> dict[str, Any]:
    """Create or update a document; empty content removes it. If-Match guards against lost updates."""
    await scan_document_ahead(clean_document(body.content))
    return with_etag(response, await in_thread(_put, request.auth, name, path, body.content, if_match(request)))


def _put(caller: Caller, name: str, path: str, content: str, versions: frozenset[int] | None) -> dict[str, Any]:
    caller.limits.require_books([name])
    book = book_get_or_create(caller.owner_id, name)
    stored = live_artifacts(caller.owner_id, book.pk).filter(path=path).values_list("version", flat=True)
    version = expected_version(versions, stored.first() or 0) if versions else None
    return artifact_json(artifact_put(book, path, content, edit_source(caller), version=version))
