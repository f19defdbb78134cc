"""Request changes learned from model servers' refusals: they can be viewed and deleted."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from gateway.models import LearnedChange
from gateway.services import learned_changes_forget
from gateway.upstream.cache import change_of
from memories.admin.base import DaybookAdmin
from memories.admin.columns import column, moment_column


@admin.register(LearnedChange)
class LearnedChangeAdmin(DaybookAdmin):
    """Learned request changes. They cannot be edited; the options of an upstream are for manual changes."""

    forbidden = ("add", "change")
    list_display = ("upstream", "model", "what", "words", "learned", "expires")
    search_fields = ("upstream", "model", "parameter")
    fields = (("upstream", "model"), "what", "words", ("learned", "expires"))
    learned = moment_column("learned_at", "Learned")
    expires = moment_column("expires_at", "Expires")
    what = column("Change", lambda row: str(change_of(row)))

    def delete_model(self, request: HttpRequest, obj: LearnedChange) -> None:
        learned_changes_forget(LearnedChange.objects.filter(pk=obj.pk))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        learned_changes_forget(queryset)
