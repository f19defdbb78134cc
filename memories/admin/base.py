"""What every page of the admin shares: no table is counted completely, and every save and delete calls a service."""

from typing import Any, ClassVar

from django.contrib import messages
from django.contrib.admin import ShowFacets
from django.db.models import Model, Q, QuerySet, UUIDField
from django.db.models.constants import LOOKUP_SEP
from django.http import HttpRequest, HttpResponse
from unfold.admin import ModelAdmin

from memories.admin.access import action_record, fields_note, listing_record, opening_record
from memories.admin.paging import LookAheadChangeList, LookAheadPaginator
from memories.audit.log import Action
from memories.ids import parse_uuid
from memories.limits import SHORT_LENGTH
from memories.selectors import row_by_id


def staff_actor(request: HttpRequest) -> str:
    """Return the actor of what a member of staff does here: `staff:ID`."""
    return f"staff:{request.user.pk}"


class DaybookAdmin(ModelAdmin):
    """Lists newest first, by key: the one order that every table has an index for. `sortable_by` names other columns
    that have one."""

    paginator = LookAheadPaginator
    show_full_result_count = False
    show_facets = ShowFacets.NEVER  # facets count
    sortable_by: ClassVar[tuple[str, ...]] = ()
    ordering: ClassVar[tuple[str, ...]] = ("-pk",)
    list_per_page = 50
    list_filter_submit = True
    list_disable_select_all = True
    compressed_fields = True
    warn_unsaved_form = True
    empty_value_display = "–"
    records_opening: ClassVar[bool] = False
    # How the audit log calls a change that was made with the form.
    change_action: ClassVar[Action] = Action.CHANGE
    # Long columns that only a row's page shows.
    list_defer: ClassVar[tuple[str, ...]] = ()
    # Columns that an id, or a number, typed into the search must equal.
    searched_ids: ClassVar[tuple[str, ...]] = ()
    searched_number: ClassVar[str] = ""

    class Media:
        js = ("admin/labels.js",)

    def rows_read(self, rows: list[Any]) -> None:
        """Add to the rows of a list's page what their columns need and a join cannot give. Called once a page."""

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return what a row's page shows beside its fields. Asked for after the permission was checked."""
        return {}

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], **kwargs: Any) -> HttpResponse:
        """Render the row's page with its `page_context`. A form that was refused has already changed the row in memory,
        so the row is read again."""
        row = kwargs.get("obj")
        if row is not None and request.method != "GET":
            row = self.get_object(request, str(row.pk))
        more = self.page_context(request, row) if row is not None else {}
        return super().render_change_form(request, {**context, **more}, **kwargs)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).defer(*self.list_defer)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Return the row of that id, with the rows that the list reads along; None where there is none."""
        if from_field or not isinstance(self.opts.pk, UUIDField):
            return super().get_object(request, object_id, from_field)
        rows = self.get_queryset(request).defer(None)
        if self.list_select_related:
            rows = rows.select_related(*self.list_select_related)
        return row_by_id(rows, object_id)

    # The admin's own log repeats the names of rows, and goes with the account of the administrator: the audit log
    # takes its place.
    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> None:
        action_record(request, self.model, "", [obj], Action.ADD)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> None:
        action_record(request, self.model, fields_note(message), [obj], self.change_action)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> None:
        action_record(request, self.model, "", queryset, Action.DELETE)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Return True for what the filters of the list ask for. Django allows every column of the row, also those that
        no page shows: whoever asks for one beginning after the other would read them."""
        column = lookup.partition(LOOKUP_SEP)[0]
        columns = {name for field in self.opts.get_fields() for name in (field.name, getattr(field, "attname", ""))}
        filters = self.get_list_filter(request) if request is not None else self.list_filter
        if column in columns and not any(_asks_for(each, lookup, column) for each in filters):
            return False
        return super().lookup_allowed(lookup, value, request)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Look up an id or a number; search for anything else."""
        term = search_term.strip()
        if self.searched_ids and (key := parse_uuid(term)):
            return queryset.filter(Q(*((name, key) for name in self.searched_ids), _connector=Q.OR)), False
        if self.searched_number and term.isdecimal():
            return queryset.filter(**{self.searched_number: int(term) if len(term) < 19 else -1}), False
        if len(term) > SHORT_LENGTH:  # each word is a condition, and databases bound their number
            self.message_user(request, f"A search has at most {SHORT_LENGTH} characters.", messages.ERROR)
            return queryset.none(), False
        return super().get_search_results(request, queryset, search_term)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[LookAheadChangeList]:
        return LookAheadChangeList

    def response_action(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        """Run an action on the rows that were ticked. “All of them” is refused: those would be rows that nobody has
        seen."""
        if request.POST.get("select_across") not in (None, "", "0"):
            self.message_user(request, "Choose the rows of one page.", messages.ERROR)
            return None
        return super().response_action(request, queryset)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the list. Where it shows what owners said, record that it was looked at."""
        response: HttpResponse = super().changelist_view(request, extra_context)
        context = getattr(response, "context_data", None) or {}
        if self.records_opening and "cl" in context:
            listing_record(request, self.model, context["cl"].result_list)
        return response

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a row's page and record that it was opened; also for a refused form, whose page shows the row again."""
        extra_context = {"show_save_and_add_another": False, **(extra_context or {})}
        response: HttpResponse = super().changeform_view(request, object_id, form_url, extra_context)
        shown = (getattr(response, "context_data", None) or {}).get("original")
        if self.records_opening and shown is not None:
            opening_record(request, shown)
        return response


def _asks_for(list_filter: Any, lookup: str, column: str) -> bool:
    """Return True if an entry of `list_filter` asks for this look-up, or for others of the column."""
    if isinstance(list_filter, type):
        return getattr(list_filter, "parameter_name", "") == lookup
    named = list_filter if isinstance(list_filter, str) else list_filter[0]
    return bool(named.partition(LOOKUP_SEP)[0] == column)


class ReadOnlyAdmin(DaybookAdmin):
    """A page to look at. Whatever permissions a user has, nothing is added, changed or deleted here, so that Django
    shows every field as one to read."""

    warn_unsaved_form = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
