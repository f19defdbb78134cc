"""What the API and exports show of a row."""

from typing import Any

from memories.api import answers
from memories.api.answers import as_shape
from memories.models import Artifact, Memory, Revision


def memory_json(memory: Memory) -> dict[str, Any]:
    """Return a memory as the API shows it. The row comes with its book."""
    return as_shape(
        answers.Memory,
        memory,
        id=str(memory.number),
        object="memory",
        book=memory.book.name,
        evidence=memory.evidence.public(),
    )


def revision_json(revision: Revision) -> dict[str, Any]:
    """Return a revision as the API shows it. The row comes with its change set."""
    source = revision.change_set
    return as_shape(
        answers.Revision,
        revision,
        object="revision",
        before=_shown(revision.before),
        after=_shown(revision.after),
        evidence=revision.evidence.public(),
        change_set=revision.change_set_id,
        review_id=source.review_id,
        session_id=source.session_id,
    )


def _shown(state: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a state without what only the scan reads in it: which words an administrator has allowed."""
    return state and {name: value for name, value in state.items() if name != "allowed_hash"}


def artifact_json(artifact: Artifact) -> dict[str, Any]:
    """Return a document as the API shows it."""
    return as_shape(answers.Artifact, artifact)
