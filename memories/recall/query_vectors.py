"""Query vectors for searches outside of recall: by the API, over MCP and by a model with its tool. The gateway
registers how to call the embedding model; this module determines the model of a book's vectors."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from uuid import UUID

from django.conf import settings

from memories.database.access import in_read_thread
from memories.recall.book_views import BookState
from memories.recall.snapshot import snapshots
from memories.registered import Registered
from memories.selectors import book_named

Embedder = Callable[[str, str], Awaitable[Sequence[float] | None]]
"""Returns the vector of a text by a named model, or None after the deadline. Never raises."""
query_embedder = Registered[Embedder]("how query vectors are made")


async def query_vectors(owner_id: UUID, book: str, texts: Sequence[str]) -> Mapping[str, Sequence[float]]:
    """Return the vectors of queries to an owner's book, by text; those that took too long are missing. If the book has
    no vectors, the model is not called: an owner's texts that must not be sent to it have none."""
    if not settings.EMBEDDING_MODEL or not texts:
        return {}
    model = await in_read_thread(_model_of, owner_id, book)
    if not model:
        return {}
    embed = query_embedder()
    made = {text: await embed(text, model) for text in dict.fromkeys(texts)}
    return {text: vector for text, vector in made.items() if vector is not None}


def _model_of(owner_id: UUID, name: str) -> str:
    """Return the model of a book's vectors, or "" if it has none."""
    book = book_named(owner_id, name)
    return snapshots.view(BookState.of(book)).vectors.model if book else ""
