"""Background jobs: what reviews, consolidation, search words and vectors have in common."""

import logging
from uuid import UUID

logger = logging.getLogger("daybook.jobs")


def log_unclaimed(kind: str, job_id: UUID, cause: str, **details: object) -> None:
    """Log in one line why a worker leaves a job that the queue gave it. `cause` is a fixed word; `details` are ids,
    states and times, never words of a person."""
    fields = {"id": job_id, "cause": cause, **details}
    logger.info("%s not claimed: %s", kind, " ".join(f"{name}={value}" for name, value in fields.items()))
