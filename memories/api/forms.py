"""What the API and exports show of a row."""

from typing import Any

from memories.models import Artifact, Memory, Revision


def memory_json(memory: Memory) -> dict[str, Any]:
    """Return a memory as the API shows it. The row comes with its book."""
    return {
        "id": str(memory.number),
        "object": "memory",
        "book": memory.book.name,
        "target": memory.target,
        "category": memory.category,
        "content": memory.content,
        "keywords": memory.keywords,
        "metadata": memory.metadata,
        "write_origin": memory.write_origin,
        "evidence": memory.evidence.public(),
        "pinned": memory.pinned,
        "blocked": memory.blocked,
        "usage_count": memory.usage_count,
        "last_used_at": memory.last_used_at,
        "expires_at": memory.expires_at,
        "version": memory.version,
        "session_id": str(memory.session_id) if memory.session_id else None,
        "review_id": str(memory.review_id) if memory.review_id else None,
        "created_at": memory.created_at,
        "updated_at": memory.updated_at,
    }


def revision_json(revision: Revision) -> dict[str, Any]:
    """Return a revision as the API shows it. The row comes with its change set."""
    source = revision.change_set
    return {
        "id": str(revision.pk),
        "object": "revision",
        "action": revision.action,
        "before": _shown(revision.before),
        "after": _shown(revision.after),
        "evidence": revision.evidence.public(),
        "actor": revision.actor,
        "write_origin": revision.write_origin,
        "change_set": str(revision.change_set_id),
        "review_id": str(source.review_id) if source.review_id else None,
        "session_id": str(source.session_id) if source.session_id else None,
        "created_at": revision.created_at,
    }


def _shown(state: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a state without what only the scan reads in it: which words an administrator has allowed."""
    return state and {name: value for name, value in state.items() if name != "allowed_hash"}


def artifact_json(artifact: Artifact) -> dict[str, Any]:
    """Return a document as the API shows it."""
    return {
        "path": artifact.path,
        "content": artifact.content,
        "version": artifact.version,
        "write_origin": artifact.write_origin,
        "kept": artifact.kept,
        "updated_at": artifact.updated_at,
    }
