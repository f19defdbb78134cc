"""The admin of the reviews app. reviews.admin.dashboard is the admin's index page."""

from django.contrib import admin
from django_q.models import Failure, OrmQ, Schedule, Success

from reviews.admin import (
    consolidation_artifacts,
    consolidation_books,
    consolidation_records,
    consolidation_runs,
    review_runs,
    turn_reviews,
)

# The queue's own pages do not belong in the admin: a schedule can name any function to call, and failures are shown by
# the review runs. The queue registers its waiting jobs only where its broker is the database.
admin.site.unregister([m for m in (Failure, OrmQ, Schedule, Success) if admin.site.is_registered(m)])
