"""Users, groups, and the record of what administrators did and opened."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from memories.admin.access import log_word
from memories.admin.base import DaybookAdmin, ReadOnlyAdmin
from memories.admin.filters import DayFilter
from memories.admin.marks import moment

admin.site.unregister(User)
admin.site.unregister(Group)


class TickedChoices:
    """Groups and permissions to tick: one list, where Django's pair of lists is a riddle to screen readers."""

    filter_horizontal = ()

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        kwargs.setdefault("widget", UnfoldAdminCheckboxSelectMultipleWidget)
        return super().formfield_for_manytomany(db_field, request, **kwargs)  # type: ignore[misc]  # a page's


@admin.register(User)
class UserAdmin(TickedChoices, DjangoUserAdmin, DaybookAdmin):  # type: ignore[misc, type-arg]
    """People who sign in. A newcomer finds an empty, working book."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "is_active", "is_staff", "is_superuser", "last_login")
    list_filter = ("is_active", "is_staff", "is_superuser", "groups")
    ordering = ("username",)


@admin.register(Group)
class GroupAdmin(TickedChoices, DjangoGroupAdmin, DaybookAdmin):  # type: ignore[misc]  # two bases that agree at run time
    """Groups of permissions, such as “memory auditor”."""

    ordering = ("name",)


@admin.register(LogEntry)
class LogEntryAdmin(ReadOnlyAdmin):
    """Who did or opened what in the admin. It names rows, and never holds their words."""

    list_display = ("when", "user", "deed", "kind", "object_repr", "note")
    list_select_related = ("user", "content_type")
    list_filter = (("action_time", DayFilter),)
    search_fields = ("user__username", "object_repr")
    search_help_text = "User name, or the name of a row"

    @admin.display(description="When")
    def when(self, entry: LogEntry) -> str:
        return moment(entry.action_time)

    @admin.display(description="What")
    def deed(self, entry: LogEntry) -> str:
        return log_word(entry.action_flag)

    @admin.display(description="Kind of row")
    def kind(self, entry: LogEntry) -> str:
        return entry.content_type.name if entry.content_type else "–"

    @admin.display(description="Note")
    def note(self, entry: LogEntry) -> str:
        return str(entry.get_change_message())

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser)
