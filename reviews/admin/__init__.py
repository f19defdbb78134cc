"""The admin's pages of the reviews floor; its first page is reviews.admin.dashboard."""

from reviews.admin import queue, review_runs

__all__ = ["queue", "review_runs"]
