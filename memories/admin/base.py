"""Base classes of the admin pages: no table is counted completely, and every save and delete calls a service."""

import re
from collections.abc import Sequence
from functools import lru_cache
from html import unescape
from typing import Any, ClassVar

from django.contrib import messages
from django.contrib.admin import ShowFacets
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import unquote
from django.contrib.admin.widgets import AutocompleteSelect
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet, UUIDField
from django.db.models.constants import LOOKUP_SEP
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import Resolver404, resolve, reverse
from unfold.admin import ModelAdmin

from memories.admin.access import action_record, fields_note, listing_record, opening_record
from memories.admin.forms import RefusableForm
from memories.admin.paging import LookAheadChangeList, LookAheadPaginator
from memories.audit.log import Action
from memories.errors import DomainError
from memories.ids import parse_uuid
from memories.limits import SHORT_LENGTH
from memories.selectors import row_by_id

# The theme leaves one link open, which must not hide those after it, and closes those of the path with `</a >`.
_LINK = re.compile(r'<a\b[^>]*? href="([^"]*)"[^>]*>((?:(?!<a\b).)*?)</a ?>', re.DOTALL)
_REFUSAL = "daybook.refusal"  # the META key of a refused change, until the form is shown again


def staff_actor(request: HttpRequest) -> str:
    """Return the actor for what staff do in the admin: `staff:ID`."""
    return f"staff:{request.user.pk}"


class _RowSelect(AutocompleteSelect):
    """A search field for a row with a UUID. Django's own fails if it is shown again with anything else."""

    def optgroups(self, name: str, value: Sequence[str], attrs: Any = None) -> Any:
        return super().optgroups(name, [key for key in value if parse_uuid(key)], attrs)


class DaybookAdmin(ModelAdmin):
    """A page that lists the newest rows first, by primary key: the only order that every table has an index for.
    `sortable_by` names other columns that have one."""

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
    # What nobody may do on this page, whatever their permissions: add, change or delete.
    forbidden: ClassVar[tuple[str, ...]] = ()
    audits_access: ClassVar[bool] = False
    # The audit action for a change made with the form.
    change_action: ClassVar[Action] = Action.CHANGE
    # Long columns that only a row's page shows.
    list_defer: ClassVar[tuple[str, ...]] = ()
    # Columns in which the search looks up an id, or a number.
    searched_ids: ClassVar[tuple[str, ...]] = ()
    searched_number: ClassVar[str] = ""

    class Media:
        js = ("admin/labels.js",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return "add" not in self.forbidden and super().has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return "change" not in self.forbidden and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return "delete" not in self.forbidden and super().has_delete_permission(request, obj)

    def prepare_rows(self, rows: list[Any]) -> None:
        """Add data that the columns need and a join cannot provide to the rows of a list page. Called once per page."""

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return the extra template context of a row's page. Called after the permission check."""
        return {}

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], **kwargs: Any) -> HttpResponse:
        """Render the row's page with its `page_context`. After an invalid form the row is read again, since the form
        has already changed it in memory."""
        row = kwargs.get("obj")
        if row is not None and request.method != "GET":
            row = self.get_object(request, str(row.pk))
        extra = self.page_context(request, row) if row is not None else {}
        return super().render_change_form(request, {**context, **extra}, **kwargs)

    def other_page(
        self, request: HttpRequest, template: str, title: str, *, status: int = 200, **context: Any
    ) -> TemplateResponse:
        """Return a page of the admin that is neither a list nor a row's page."""
        page = {**self.admin_site.each_context(request), "opts": self.opts, "title": title, **context}
        return TemplateResponse(request, template, page, status=status)

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name in self.get_autocomplete_fields(request):
            kwargs["widget"] = _RowSelect(db_field, self.admin_site)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Return nothing: Django would fill the form from the address, and fail for values of the wrong type."""
        return {}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).defer(*self.list_defer)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Return the row with that id, joined as in the list, or None."""
        if from_field or not isinstance(self.opts.pk, UUIDField):
            return super().get_object(request, object_id, from_field)
        rows = self.get_queryset(request).defer(None)
        if self.list_select_related:
            rows = rows.select_related(*self.list_select_related)
        return row_by_id(rows, object_id)

    def _get_obj_does_not_exist_redirect(self, request: HttpRequest, opts: Any, object_id: str) -> HttpResponse:
        """Return to the admin's first page with a message. Django's sentence begins with the model's name, in lower
        case."""
        self.message_user(
            request,
            f"There is no {opts.verbose_name} with the ID “{unquote(object_id)}”. Perhaps it was deleted.",
            messages.WARNING,
        )
        return HttpResponseRedirect(reverse("admin:index", current_app=self.admin_site.name))

    # The audit log replaces Django's admin log, which stores the names of rows and is deleted with the administrator's
    # account.
    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> None:
        action_record(request, self.model, "", [obj], Action.ADD)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> None:
        action_record(request, self.model, fields_note(message), [obj], self.change_action)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> None:
        action_record(request, self.model, "", queryset, Action.DELETE)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Return True if a filter of the list uses the lookup. Django allows lookups on every column of the row, which
        would let users read columns that no page shows, prefix by prefix."""
        column = lookup.partition(LOOKUP_SEP)[0]
        columns = {name for field in self.opts.get_fields() for name in (field.name, getattr(field, "attname", ""))}
        filters = self.get_list_filter(request) if request is not None else self.list_filter
        if column in columns and not any(_filter_allows(each, lookup, column) for each in filters):
            return False
        return super().lookup_allowed(lookup, value, request)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Look up ids and numbers directly; search for anything else."""
        term = search_term.strip()
        if self.searched_ids and (key := parse_uuid(term)):
            return queryset.filter(Q(*((name, key) for name in self.searched_ids), _connector=Q.OR)), False
        if self.searched_number and term.isdecimal():
            return queryset.filter(**{self.searched_number: int(term) if len(term) < 19 else -1}), False
        if len(term) > SHORT_LENGTH:  # each word is a condition, and databases limit their number
            self.message_user(request, f"A search has at most {SHORT_LENGTH} characters.", messages.ERROR)
            return queryset.none(), False
        return super().get_search_results(request, queryset, search_term)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[LookAheadChangeList]:
        return LookAheadChangeList

    def response_action(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        """Run an action on the selected rows. Selecting all rows of the list is refused, since it includes rows that
        the user has not seen."""
        if request.POST.get("select_across") not in (None, "", "0"):
            self.message_user(request, "Select rows of one page only.", messages.ERROR)
            return None
        try:
            for key in request.POST.getlist(ACTION_CHECKBOX_NAME):
                self.opts.pk.run_validators(self.opts.pk.to_python(key))
        except ValidationError:
            self.message_user(request, "Select rows of this list.", messages.ERROR)
            return None
        return super().response_action(request, queryset)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the list, and record it in the audit log if `audits_access` is set."""
        response: HttpResponse = super().changelist_view(request, extra_context)
        changelist = _without_dead_links(request, response).get("cl")
        if self.audits_access and changelist is not None:
            listing_record(request, self.model, changelist.result_list)
        return response

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a row's page, and record it in the audit log if `audits_access` is set. An invalid form shows the row
        too."""
        extra_context = {"show_save_and_add_another": False, **(extra_context or {})}
        response: HttpResponse = super().changeform_view(request, object_id, form_url, extra_context)
        shown = _without_dead_links(request, response).get("original")
        if self.audits_access and shown is not None:
            opening_record(request, shown)
        return response


def _without_dead_links(request: HttpRequest, response: HttpResponse) -> dict[str, Any]:
    """Show only the words of links to lists and rows that the user may not view, once the page is rendered: columns,
    and Django's links to related rows, do not know who looks. Return the page's context, empty for a redirect."""
    if not isinstance(response, TemplateResponse):
        return {}

    def shown(link: re.Match[str]) -> str:
        model_page = _page_at(unescape(link[1]).partition("?")[0])
        return link[2] if model_page and not model_page.has_view_permission(request) else link[0]

    def remove(rendered: TemplateResponse) -> None:
        rendered.content = _LINK.sub(shown, rendered.content.decode()).encode()

    response.add_post_render_callback(remove)
    return response.context_data or {}


@lru_cache(maxsize=1024)
def _page_at(path: str) -> Any:
    """Return the page of a model at this path, or None. Finding it takes long, and every page has the same sidebar."""
    try:
        return getattr(resolve(path).func, "model_admin", None)
    except Resolver404:
        return None


def _filter_allows(list_filter: Any, lookup: str, column: str) -> bool:
    """Return True if an entry of `list_filter` uses this lookup or filters by this column."""
    if isinstance(list_filter, type):
        return getattr(list_filter, "parameter_name", "") == lookup
    named = list_filter if isinstance(list_filter, str) else list_filter[0]
    return bool(named.partition(LOOKUP_SEP)[0] == column)


class ReadOnlyAdmin(DaybookAdmin):
    """A read-only page, on which Django shows every field as read-only."""

    forbidden = ("add", "change", "delete")
    warn_unsaved_form = False


class ServiceAdmin(DaybookAdmin):
    """A page whose `save_model` calls a service and does not catch its DomainErrors; `form` is a RefusableForm.
    Django's own deletion is disabled, since it would bypass the service and delete histories: use actions instead."""

    forbidden: ClassVar[tuple[str, ...]] = ("delete",)
    # Shown in place of `fieldsets` to users who may not change the row.
    read_only_fieldsets: ClassVar[tuple[Any, ...]] = ()

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        shows_form = obj is None or self.has_change_permission(request, obj)
        return (not shows_form and self.read_only_fieldsets) or super().get_fieldsets(request, obj)

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> type[RefusableForm]:
        form: type[RefusableForm] = super().get_form(request, obj, change, **kwargs)
        refusal = request.META.get(_REFUSAL)
        return type(f"Refused{form.__name__}", (form,), {"refusal": refusal}) if refusal else form

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Show the row's page; if the service refuses a change, show it again with the refusal."""
        try:
            return super().changeform_view(request, *args, **kwargs)
        except DomainError as refusal:
            request.META[_REFUSAL] = refusal
            return super().changeform_view(request, *args, **kwargs)
