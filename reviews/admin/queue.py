"""The queue's own pages are taken out of the admin: a schedule names any function to be called, which is nothing for a
web form, and what failed is told by the review runs. The first page shows how many jobs wait."""

from django.contrib import admin
from django_q.models import Failure, OrmQ, Schedule, Success

for model in (Failure, OrmQ, Schedule, Success):
    # The queue registers its waiting jobs only where its broker is the database.
    if admin.site.is_registered(model):
        admin.site.unregister(model)
