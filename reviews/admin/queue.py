"""Removes the queue's own pages from the admin: a schedule names any function to be called, which a web form must not
offer, and failures are shown with the review runs. The first page shows how many jobs wait."""

from django.contrib import admin
from django_q.models import Failure, OrmQ, Schedule, Success

for model in (Failure, OrmQ, Schedule, Success):
    # The queue registers its waiting jobs only where its broker is the database.
    if admin.site.is_registered(model):
        admin.site.unregister(model)
