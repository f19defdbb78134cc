"""Workers in the admin, and the request changes learned from model servers' refusals."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from gateway.heartbeat import alive_workers
from gateway.models import LearnedChange, Worker
from gateway.services import learned_changes_forget
from gateway.upstream.cache import change_of
from memories.admin.badges import badge
from memories.admin.base import DaybookAdmin, ReadOnlyAdmin
from memories.admin.columns import column, moment_column


@admin.register(Worker)
class WorkerAdmin(ReadOnlyAdmin):
    """Worker processes and their heartbeats."""

    list_display = ("name", "state", "started", "beat")
    started = moment_column("started_at", "Started")
    beat = moment_column("beat_at", "Last heartbeat")
    name = column("Worker", str)
    state = column(
        "State", lambda row: badge("Running", "ok", "check") if row.alive else badge("No heartbeat", "warn", "schedule")
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Worker]:
        return super().get_queryset(request).annotate(alive=Q(pk__in=alive_workers()))


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
