"""Artifacts in the admin: the documents of a book, rendered, with their history. Edits go through
memories.artifacts.store, which scans them and keeps every version. The page is in this app because it renders Markdown
with the gateway and computes changed lines as the reviews page does."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Q
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminTextareaWidget

import scanning
from gateway.chat.markdown import render_markdown
from memories.admin.access import action_record
from memories.admin.actors import actors_add
from memories.admin.badges import badge, moment, origin_badge
from memories.admin.base import ServiceAdmin
from memories.admin.columns import column, fieldset, moment_column
from memories.admin.filters import BOOK_FILTER, OWNER_FILTER, DayFilter, OriginFilter, StateFilter
from memories.admin.forms import RefusableForm
from memories.admin.memory_writes import staff_source
from memories.admin.object_actions import ObjectActionAdmin, object_action, posted_revision
from memories.artifacts.store import artifact_put, artifact_usage
from memories.errors import BlockedByScan, DomainError, TooLarge
from memories.models import Artifact, ArtifactRevision
from memories.number_words import counted, times
from memories.pagination import parse_number
from reviews.page.document import lines_of, newest_revisions, revision_verb, text_of_state


class ArtifactStateFilter(StateFilter):
    """A filter by state. By default removed artifacts are excluded."""

    all_option = ["", "Not removed"]
    words = {"blocked": "Blocked", "kept": "Kept for a person's edits", "removed": "Removed", "all": "All"}

    def conditions(self) -> dict[str, Q]:
        live = Q(deleted_at=None)
        return {"": live, "removed": ~live, "blocked": live & ~Q(scan_rule=""), "kept": live & Q(kept=True)}


class ArtifactForm(RefusableForm):
    """The form of a document. `version` guards against lost updates."""

    content = forms.CharField(
        label="Text, as Markdown",
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 18}),
        help_text="What you write stays: the next consolidation keeps it. The old words stay in the history.",
    )
    version = forms.IntegerField(widget=forms.HiddenInput)

    class Meta:
        model = Artifact
        fields = ("content",)

    def __init__(self, data: Any = None, *args: Any, **kwargs: Any) -> None:
        artifact: Artifact | None = kwargs.get("instance")
        if artifact is not None:
            kwargs.setdefault("initial", {}).update(version=artifact.version)
        if data is not None and isinstance(self.refusal, BlockedByScan):
            data = data.copy()
            data["content"] = scanning.redact(str(data.get("content", ""))).text
        super().__init__(data, *args, **kwargs)

    def field_of(self, refusal: DomainError) -> str | None:
        return "content" if isinstance(refusal, BlockedByScan | TooLarge) else super().field_of(refusal)


def history_of(artifact: Artifact) -> list[dict[str, Any]]:
    """Return the newest revisions of an artifact as the page shows them, newest first. At most three queries."""
    rows = newest_revisions(artifact)
    actors_add(rows)
    return [
        {
            "id": revision.pk,
            "who": origin_badge(revision.write_origin),
            "actor": revision.actor_words,  # type: ignore[attr-defined]
            "verb": revision_verb(revision),
            "at": revision.created_at,
            "lines": lines_of(revision),
            "present": revision.version == artifact.version,
            "restorable": revision.version != artifact.version and bool(text_of_state(revision.after)),
        }
        for revision in rows
    ]


@admin.register(Artifact)
class ArtifactAdmin(ObjectActionAdmin, ServiceAdmin):
    """The documents of consolidation, with people's edits."""

    forbidden = ("add", "delete")  # documents are created by consolidation or by their owner
    audits_access = True
    object_actions = ("remove", "put_back")
    form = ArtifactForm
    list_display = ("path", "owner", "book", "version", "origin", "state", "updated")
    list_select_related = ("owner__user", "book")
    list_defer = ("content", "person_lines", "struck_lines")
    list_filter = (
        ArtifactStateFilter,
        OWNER_FILTER,
        BOOK_FILTER,
        OriginFilter,
        ("updated_at", DayFilter),
    )
    search_fields = ("path", "book__name")
    search_help_text = "Path, or the book's name"
    change_form_template = "admin/memories/artifact/change_form.html"
    fieldsets = (
        fieldset("Edit", "content", "version"),
        fieldset(
            "Details",
            ("path", "version_number"),
            ("owner", "book"),
            ("origin", "state"),
            ("updated", "created"),
            ("reads", "by_people"),
        ),
    )
    read_only_fieldsets = fieldsets[1:]
    readonly_fields = (
        "path", "owner", "book", "version_number", "origin", "state", "updated", "created", "reads", "by_people",
    )  # fmt: skip

    def has_change_permission(self, request: HttpRequest, obj: Artifact | None = None) -> bool:
        allowed: bool = super().has_change_permission(request, obj)
        # A POST is let through: the service refuses to edit a removed document, and the form keeps the typed text.
        removed = obj is not None and obj.deleted_at is not None and request.method == "GET"
        return allowed and not removed

    updated = moment_column("updated_at", "Updated")
    created = moment_column("created_at", "Created")
    version_number = column("Version", lambda artifact: artifact.version)
    origin = column("Written by", lambda artifact: origin_badge(artifact.write_origin))
    by_people = column(
        "People's edits", lambda row: f"{counted(len(row.person_lines), 'line')} added, {len(row.struck_lines)} removed"
    )

    @admin.display(description="State")
    def state(self, artifact: Artifact) -> SafeString:
        if artifact.deleted_at:
            return badge("Removed", "muted", "delete")
        if artifact.scan_rule:
            return badge("Blocked", "danger", "error")
        return badge("Kept", "accent", "keep") if artifact.kept else badge("Live", "ok", "check")

    @admin.display(description="Read by agents")
    def reads(self, artifact: Artifact) -> str:
        usage = artifact_usage(artifact.owner_id, [artifact]).get(artifact.pk)
        if usage is None or not usage.reads:
            return "Not read yet"
        return f"{times(usage.reads)}, last {moment(usage.last_read_at)}"

    @object_action("Remove", "memories.change_artifact", look="danger", applies=lambda row: not row.deleted_at)
    def remove(self, request: HttpRequest, row: Artifact) -> None:
        self._put(request, row, "", "Removed.", "Its history stays, and it can be restored from there.")

    # Its buttons are in the history.
    @object_action("Restore this", "memories.change_artifact", applies=lambda row: False)
    def put_back(self, request: HttpRequest, row: Artifact) -> None:
        revision = posted_revision(request, ArtifactRevision.objects.filter(artifact=row, owner_id=row.owner_id))
        content = text_of_state(revision.after)
        self._put(request, row, content, "Restored.", "The previous text stays in the history.")

    def _put(self, request: HttpRequest, row: Artifact, content: str, done: str, note: str) -> None:
        version = parse_number(request.POST.get("version", ""))
        if version == row.version and row.deleted_at:
            version = 0  # what the service expects for a removed document
        artifact_put(row.book, row.path, content, staff_source(request), version=version)
        self.message_user(request, f"{done} {note}", messages.SUCCESS)
        action_record(request, Artifact, done, [row])

    def page_context(self, request: HttpRequest, row: Artifact) -> dict[str, Any]:
        return {
            **super().page_context(request, row),
            "title": row.path,
            "state_badge": self.state(row),
            "rendered": "" if row.deleted_at else render_markdown(row.content),
            "history": history_of(row),
            "may_edit": request.user.has_perm("memories.change_artifact"),
        }

    def save_model(self, request: HttpRequest, obj: Artifact, form: ArtifactForm, change: bool) -> None:
        """Save through the service. Raises DomainErrors, which the form shows."""
        artifact_put(
            obj.book,
            obj.path,
            form.cleaned_data["content"],
            staff_source(request),
            version=form.cleaned_data["version"],
        )
