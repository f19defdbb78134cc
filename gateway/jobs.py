"""Background jobs: what reviews, consolidation, search words and vectors have in common."""

import logging
from uuid import UUID

logger = logging.getLogger("daybook.jobs")


class NotClaimed(Exception):
    """A worker leaves a job that the queue gave it. `cause` is a fixed word; `details` are ids, states and times, never
    words of a person."""

    def __init__(self, cause: str, **details: object) -> None:
        super().__init__(cause)
        self.fields = {"cause": cause, **details}

    def log(self, kind: str, job_id: UUID) -> None:
        """Say why, in one line of the log."""
        fields = {"id": job_id, **self.fields}
        logger.info("%s not claimed: %s", kind, " ".join(f"{name}={value}" for name, value in fields.items()))
