"""Users and groups in the admin. The last administrator cannot be removed, since nobody could manage the installation
then. Deactivating an account or changing its password ends every login at once."""

from functools import partial
from typing import Any

from axes.handlers.proxy import AxesProxyHandler
from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from gateway.accounts.logins import logins_end, other_logins
from gateway.accounts.roles import ADMINISTRATOR, AUDITOR, MEANINGS, STAFF, USER
from gateway.authentication import forget_keys
from gateway.sockets import recheck_logins
from memories.admin.access import action_record
from memories.admin.base import DaybookAdmin
from memories.admin.columns import moment_column, yes_no_column
from memories.admin.forms import GuardedForm
from memories.audit.auditors import AUDITORS
from memories.audit.log import Action, actor_of
from memories.database.batches import run_slices_within
from memories.forgetting import DELETE_SECONDS, erasure_begin, erasure_slices
from memories.models import Erasure, Owner
from memories.password_forms import PasswordOnly
from memories.services import is_only_administrator

ONLY_ADMINISTRATOR = "This is the only active administrator. Make another user an active superuser first."
ONLY_ADMINISTRATORS_UNLOCK = "Only an administrator can unlock people with a role in the administration."

_HASHED = "daybook.hashed"  # the META key of the hash of a new user's password
_ROLE_FIELDS = ("is_staff", "is_superuser", "groups", "user_permissions")
_REQUIREMENTS = {
    USER: "active, nothing else ticked",
    AUDITOR: f"staff status, group “{AUDITORS}”",
    STAFF: "staff status, and groups or permissions of your choice",
    ADMINISTRATOR: "staff status and superuser status",
}
_DEACTIVATION_HELP = (
    "Untick this instead of deleting an account: every login, API key, connected app and open page of it is refused "
    "at once. Memories, conversations and the audit log stay, and ticking it again brings the account back."
)

admin.site.unregister(User)
admin.site.unregister(Group)


class TickedChoices:
    """Shows groups and permissions as one list of checkboxes: Django's pair of lists is unusable with screen
    readers."""

    filter_horizontal = ()

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        kwargs.setdefault("widget", UnfoldAdminCheckboxSelectMultipleWidget)
        return super().formfield_for_manytomany(db_field, request, **kwargs)  # type: ignore[misc]  # a page's


def _is_administrator(request: HttpRequest) -> bool:
    return bool(request.user.is_active and getattr(request.user, "is_superuser", False))


def may_manage_user(request: HttpRequest, user: User | None) -> bool:
    """Return True if the request's user may manage the account. Accounts of staff and administrators are managed by
    administrators only: others could use the account's password or a key to gain its permissions."""
    return user is None or _is_administrator(request) or not (user.is_staff or user.is_superuser)


def roles_help() -> SafeString:
    """Return help text that describes the roles and how to assign them."""
    rows = ((role.capitalize(), _REQUIREMENTS[role], MEANINGS[role]) for role in MEANINGS)
    return format_html_join("", "<p><strong>{}</strong> ({}): {}</p>", rows)


class UserForm(GuardedForm, UserChangeForm):
    """The form of a user. It refuses to remove the last administrator."""

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        stays = cleaned.get("is_active") and cleaned.get("is_superuser")
        # Fields that the user may not change are not in the form.
        shown = {"is_active", "is_superuser"} <= self.fields.keys()
        if shown and not stays and self.instance.pk and is_only_administrator(self.instance, lock=True):
            raise forms.ValidationError(ONLY_ADMINISTRATOR)
        return cleaned


class _NewUserForm(UserCreationForm):
    """A name and a password, twice. The page sets `hashed`, the hash of the password."""

    hashed = ""

    def set_password_and_save(self, user: User, **options: Any) -> User:
        """Set the hash. The page saves the user."""
        user.password = self.hashed
        return user


class _PasswordForm(PasswordOnly, AdminPasswordChangeForm):
    """A person's new password, twice."""


@admin.register(User)
class UserAdmin(TickedChoices, DjangoUserAdmin, DaybookAdmin):  # type: ignore[misc, type-arg]
    """People who can sign in."""

    form = UserForm
    add_form = _NewUserForm
    change_password_form = _PasswordForm
    list_display = ("username", "email", "active", "staff", "administrator", "signed_in")
    list_filter = ("is_active", "is_staff", "is_superuser", "groups")
    ordering = ("username",)

    actions = ("unlock_sign_in",)

    active = yes_no_column("is_active", "Active")
    staff = yes_no_column("is_staff", "Staff")
    administrator = yes_no_column("is_superuser", "Administrator")
    signed_in = moment_column("last_login", "Last sign-in")

    @admin.action(description="Unlock sign-in", permissions=["change"])
    def unlock_sign_in(self, request: HttpRequest, queryset: "QuerySet[User]") -> None:
        """Reset the failed sign-ins of these accounts, which ends their lockout. Raises PermissionDenied for accounts
        that only administrators manage: otherwise their passwords could be guessed without limit."""
        users = list(queryset)
        if not all(may_manage_user(request, user) for user in users):
            raise PermissionDenied(ONLY_ADMINISTRATORS_UNLOCK)
        for user in users:
            AxesProxyHandler.reset_attempts(username=user.get_username())
        action_record(request, User, "", users, Action.SIGN_IN_UNLOCKED)
        self.message_user(request, "They can sign in again.", messages.SUCCESS)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return True if the permissions allow it. Django's page for adding a user demands the right to change them."""
        return bool(super().has_add_permission(request)) and self.has_change_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return True if the permissions allow it. Only administrators change staff and administrators."""
        return may_manage_user(request, obj) and bool(super().has_change_permission(request, obj))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return True if the permissions allow it. Only administrators delete staff and administrators, and the last
        administrator cannot be deleted."""
        is_last = obj is not None and is_only_administrator(obj)
        return not is_last and may_manage_user(request, obj) and bool(super().has_delete_permission(request, obj))

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """Add a user. Hashing the password takes long, so it is done before the transaction of Django's view."""
        if request.method == "POST" and self.has_add_permission(request):
            password, repeated = (request.POST.get(name) for name in ("password1", "password2"))
            usable = request.POST.get("usable_password") != "false" and password == repeated
            request.META[_HASHED] = make_password((password or None) if usable else None)
        return super().add_view(request, form_url, extra_context)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        fieldsets: list[Any] = [
            (title, options | ({"description": roles_help()} if "is_staff" in options["fields"] else {}))
            for title, options in super().get_fieldsets(request, obj)
        ]
        if obj and self.has_change_permission(request, obj):
            fieldsets[0][1]["fields"] += ("state",)
        return fieldsets

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        helps = {"is_active": _DEACTIVATION_HELP}
        form = super().get_form(request, obj, change=change, help_texts=helps, **kwargs)
        return form if change else type(form.__name__, (form,), {"hashed": request.META.get(_HASHED, "")})

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the role fields too unless the user is an administrator: others could grant themselves a role."""
        fields = super().get_readonly_fields(request, obj)
        return fields if _is_administrator(request) else (*fields, *_ROLE_FIELDS)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return what the confirmation page lists, including the data that is erased with each user."""
        deleted, *others = super().get_deleted_objects(objs, request)
        what = [f"all data of {user}: conversations, memories, keys and all history, for good" for user in objs]
        return [*deleted, *what], *others

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        """Delete a user as “Delete everything” on the person's own page does. The account stops working at once;
        erasing takes at most DELETE_SECONDS here and is finished by the sweep."""
        self._delete(request, obj, DELETE_SECONDS)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> None:  # type: ignore[override]  # as the base
        """Do nothing: the list would record deletions that are refused then, so `_delete` records them."""

    @transaction.atomic
    def delete_queryset(self, request: HttpRequest, queryset: "QuerySet[User]") -> None:
        """Delete the selected users, or none of them if no administrator would be left."""
        users = list(queryset)
        for user in users:
            self._delete(request, user, DELETE_SECONDS / len(users))

    def _delete(self, request: HttpRequest, user: User, seconds: float) -> None:
        """Delete a user in the transaction of the caller. Raises PermissionDenied for the last administrator."""
        if is_only_administrator(user, lock=True):
            raise PermissionDenied(ONLY_ADMINISTRATOR)
        action_record(request, User, "", [user], Action.DELETE)
        owner = Owner.objects.filter(user=user).first()
        if owner is None:
            super().delete_model(request, user)
            return
        erasure = erasure_begin(owner.pk, Erasure.Scope.ACCOUNT, by=actor_of(request.user))
        # Each slice is a transaction of its own, so they run after the page's transaction.
        transaction.on_commit(partial(run_slices_within, erasure_slices(erasure), seconds), robust=True)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Save the user. A deactivation is recorded in addition to the change, and signs the account out everywhere."""
        super().save_model(request, obj, form, change)
        if change and not obj.is_active:
            if "is_active" in form.changed_data:
                action_record(request, User, "", [obj], Action.USER_DEACTIVATE)
            self._sign_out(request, obj)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> None:  # type: ignore[override]  # as the base
        """Record a change. Setting a password has its own action, and ends every other login."""
        if message == [{"changed": {"fields": ["password"]}}]:
            action_record(request, User, "", [obj], Action.PASSWORD_CHANGE)
            self._sign_out(request, obj)
        else:
            super().log_change(request, obj, message)

    def _sign_out(self, request: HttpRequest, user: User) -> None:
        logins_end(user, other_logins(request, user), by=actor_of(request.user))
        forget_keys()
        for owner_id in Owner.objects.filter(user=user).values_list("pk", flat=True):
            recheck_logins(owner_id)


@admin.register(Group)
class GroupAdmin(TickedChoices, DjangoGroupAdmin, DaybookAdmin):  # type: ignore[misc]  # two bases that agree at run time
    """Groups of permissions, such as “memory auditor”. Only administrators change them: members could extend their own
    group."""

    form = GuardedForm
    ordering = ("name",)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return the groups only. Django would also list each permission and member of a group, without a name."""
        _, _, *others = super().get_deleted_objects(objs, request)
        return [str(group) for group in objs], {"groups": len(objs)}, *others

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _is_administrator(request)

    has_change_permission = has_delete_permission = has_add_permission
