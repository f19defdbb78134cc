"""The admin of the reviews app. reviews.admin.dashboard is the admin's index page."""

from reviews.admin import (
    consolidation_artifacts,
    consolidation_books,
    consolidation_leases,
    consolidation_notes,
    consolidation_runs,
    queue,
    review_runs,
    turn_reviews,
)
