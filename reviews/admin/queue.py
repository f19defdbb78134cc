"""Remove the queue's own pages from the admin: a schedule can name any function to call, which does not belong in a web
form, and failures are shown by the review runs. The index page shows how many jobs wait."""

from django.contrib import admin
from django_q.models import Failure, OrmQ, Schedule, Success

for model in (Failure, OrmQ, Schedule, Success):
    # The queue registers its waiting jobs only where its broker is the database.
    if admin.site.is_registered(model):
        admin.site.unregister(model)
