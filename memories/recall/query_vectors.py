"""Vectors of what is searched for outside of recall: by the API, over MCP and by a model with its tool. The embedding
model is asked by the app above, which registers how; here is known which model a book's vectors are of."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from uuid import UUID

from django.conf import settings

from memories.database.access import in_read_thread
from memories.recall.book_views import BookState
from memories.recall.snapshot import snapshots
from memories.registered import Registered
from memories.selectors import book_named

Embedder = Callable[[str, str], Awaitable[Sequence[float] | None]]
"""Given a text and the name of a model: its vector within the deadline, or None. It never raises."""
query_embedder = Registered[Embedder]("how the vector of a query is made")


async def query_vectors(owner_id: UUID, book: str, texts: Sequence[str]) -> Mapping[str, Sequence[float]]:
    """Return the vectors of texts that an owner's book is searched for, by text; one that did not come in time is
    missing. Nothing is asked where the book has no vectors: what may not be given to the embedding model has none."""
    if not settings.EMBEDDING_MODEL or not texts:
        return {}
    model = await in_read_thread(_model_of, owner_id, book)
    if not model:
        return {}
    embed = query_embedder()
    made = {text: await embed(text, model) for text in dict.fromkeys(texts)}
    return {text: vector for text, vector in made.items() if vector is not None}


def _model_of(owner_id: UUID, name: str) -> str:
    """Return the model of a book's vectors, "" where it has none."""
    book = book_named(owner_id, name)
    return snapshots.view(BookState.of(book)).vector_model if book else ""
