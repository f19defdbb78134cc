"""The JSON of rows, for the API and for exports."""

from typing import Any

from memories.api import answers
from memories.api.answers import as_shape
from memories.models import Artifact, Memory, Revision


def memory_json(memory: Memory) -> dict[str, Any]:
    """Return a memory as the API shows it. `book` should be selected with the row."""
    return as_shape(
        answers.Memory,
        memory,
        id=str(memory.number),
        object="memory",
        book=memory.book.name,
        evidence=memory.evidence.public(),
    )


def revision_json(revision: Revision) -> dict[str, Any]:
    """Return a revision as the API shows it. `change_set` should be selected with the row."""
    source = revision.change_set
    return as_shape(
        answers.Revision,
        revision,
        object="revision",
        before=_public_state(revision.before),
        after=_public_state(revision.after),
        evidence=revision.evidence.public(),
        change_set=revision.change_set_id,
        review_id=source.review_id,
        session_id=source.session_id,
    )


def _public_state(state: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a state without `allowed_hash`, which only the scan reads."""
    return state and {name: value for name, value in state.items() if name != "allowed_hash"}


def artifact_json(artifact: Artifact) -> dict[str, Any]:
    """Return a document as the API shows it."""
    return as_shape(answers.Artifact, artifact)
