"""The admin's page of the reviews floor."""

from reviews.admin import review_runs

__all__ = ["review_runs"]
