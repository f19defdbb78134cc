"""The admin's pages of the reviews floor; its first page is reviews.admin.dashboard."""

from reviews.admin import (
    consolidation_artifacts,
    consolidation_books,
    consolidation_leases,
    consolidation_runs,
    queue,
    review_runs,
)

__all__ = [
    "consolidation_artifacts",
    "consolidation_books",
    "consolidation_leases",
    "consolidation_runs",
    "queue",
    "review_runs",
]
