"""API keys and connected apps in the admin. Keys are created (shown once), listed and revoked; a key is never changed,
and its hash never shown. Apps are listed and disconnected. The OAuth library's own pages are unregistered, since they
could show and change clients and tokens without our services."""

from typing import Any

from django import forms
from django.apps import apps
from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminTextInputWidget

from gateway.admin.shown_once import ShownOnceAdmin
from gateway.admin.users import may_manage_user
from gateway.keys import MAX_MONEY, api_key_create, api_key_revoke, names_given, names_listed, rate_words
from gateway.models import Agent, ApiKey, ConnectedApp
from gateway.oauth.connections import app_disconnect
from memories.admin.badges import badge, moment
from memories.admin.base import ReadOnlyAdmin
from memories.admin.columns import column, fieldset, moment_column
from memories.admin.filters import OWNER_FILTER, StateFilter
from memories.admin.forms import RefusableForm
from memories.admin.object_actions import ObjectActionAdmin, object_action
from memories.audit.log import actor_of
from memories.errors import Forbidden

_LIBRARY_MODELS = apps.get_app_config("oauth2_provider").get_models()
_LIMITS = ("tokens_per_day", "money_per_day", "streams_at_once")

admin.site.unregister([model for model in _LIBRARY_MODELS if admin.site.is_registered(model)])


class KeyStateFilter(StateFilter):
    words = {"valid": "Valid", "revoked": "Revoked"}

    def conditions(self) -> dict[str, Q]:
        return {"valid": Q(revoked_at=None), "revoked": Q(revoked_at__isnull=False)}


def _agent_names() -> list[tuple[str, str]]:
    return [(name, name) for name in Agent.objects.order_by("name").values_list("name", flat=True)]


class ApiKeyForm(RefusableForm):
    money_per_day = forms.FloatField(
        required=False,
        min_value=0,
        max_value=MAX_MONEY,
        widget=UnfoldAdminTextInputWidget,
        help_text="In the currency of the prices, per UTC day; 0 = no limit.",
    )
    agents = forms.MultipleChoiceField(
        required=False,
        choices=_agent_names,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="The agents it may use; none selected: all.",
    )
    books = forms.CharField(
        required=False,
        max_length=1000,
        widget=UnfoldAdminTextInputWidget,
        help_text="The books it may use, separated by commas; a name with a comma stands in quotation marks. "
        "Empty: those of its agents, or all.",
    )

    class Meta:
        model = ApiKey
        fields = (
            "owner", "name", "read_only", "trusted", "agents", "books", "requests_per_minute", "tokens_per_day",
            "money_per_day", "streams_at_once", "expires_at",
        )  # fmt: skip

    def clean_books(self) -> list[str]:
        return names_given(self.cleaned_data["books"])

    def clean(self) -> dict[str, Any]:
        """Store empty limits as 0, which means no limit."""
        cleaned = super().clean() or self.cleaned_data
        return cleaned | {name: cleaned[name] or 0 for name in _LIMITS if name in cleaned}


@admin.register(ApiKey)
class ApiKeyAdmin(ShownOnceAdmin):
    """API keys, with which programs call the APIs for an owner."""

    form = ApiKeyForm
    made_title = "New API key"
    object_actions = ("revoke",)
    list_display = ("name", "prefix", "owner", "state", "scope", "last_used", "created")
    sortable_by = ("created",)
    list_select_related = ("owner__user",)
    list_filter = (KeyStateFilter, OWNER_FILTER)
    search_fields = ("name", "prefix")
    autocomplete_fields = ("owner",)
    add_fieldsets = (
        fieldset(
            None, "owner", "name", ("read_only", "trusted"), "agents", "books", "expires_at",
            ("requests_per_minute", "streams_at_once"), ("tokens_per_day", "money_per_day"),
        ),
    )  # fmt: skip
    fields = (("name", "prefix"), ("owner", "state"), "scope", ("created", "last_used"))
    last_used = moment_column("last_used_at", "Last used")
    created = moment_column("created_at", "Created", ordering="pk")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiKey]:
        return super().get_queryset(request).filter(client=None)

    @admin.display(description="State")
    def state(self, key: ApiKey) -> SafeString:
        if key.revoked_at:
            return badge(f"Revoked {moment(key.revoked_at)}", "muted", "block")
        if key.expires_at and key.expires_at <= timezone.now():
            return badge(f"Expired {moment(key.expires_at)}", "muted", "block")
        return badge(f"Valid until {moment(key.expires_at)}" if key.expires_at else "Valid", "ok", "check")

    @admin.display(description="May")
    def scope(self, key: ApiKey) -> str:
        parts = ["read only" if key.read_only else "read and write"]
        parts += ["name end users"] * key.trusted
        parts += [f"agents: {', '.join(key.agents)}" if key.agents else "all agents"]
        parts += [f"books: {names_listed(key.books)}"] * bool(key.books)
        return "; ".join(parts + rate_words(key))

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        """Raises InvalidRequest and Forbidden, which the form shows."""
        if not may_manage_user(request, obj.owner.user):
            raise Forbidden("Only an administrator can create keys for people with a role in the administration.")
        key, plain = api_key_create(**form.cleaned_data, by=actor_of(request.user))
        # The admin logs and redirects with obj, so it needs the values of the stored row.
        obj.pk, obj.prefix = key.pk, key.prefix
        self.show_once(request, key=obj, plain=plain)

    @object_action("Revoke", "gateway.change_apikey", look="danger", applies=lambda key: key.revoked_at is None)
    def revoke(self, request: HttpRequest, row: ApiKey) -> None:
        api_key_revoke(row, by=actor_of(request.user))
        self.message_user(request, f"Revoked {row}.", messages.SUCCESS)


@admin.register(ConnectedApp)
class ConnectedAppAdmin(ObjectActionAdmin, ReadOnlyAdmin):
    """Apps that people connected on the OAuth consent page."""

    object_actions = ("disconnect",)
    list_display = ("name", "owner", "book", "may", "state", "last_used", "created")
    list_select_related = ("owner__user", "client")
    list_filter = (KeyStateFilter, OWNER_FILTER)
    search_fields = ("name",)
    fields = (("name", "owner"), ("book", "may"), "redirects", "state", ("created", "last_used"))
    last_used = moment_column("last_used_at", "Last used")
    created = moment_column("created_at", "Connected")
    book = column("Book", lambda app: str(app.books[0]))
    may = column("May", lambda app: "read only" if app.read_only else "read and write")
    redirects = column("Returns to", lambda app: app.client.redirect_uris if app.client else "")

    @admin.display(description="State")
    def state(self, app: ConnectedApp) -> SafeString:
        if app.revoked_at:
            return badge(f"Disconnected {moment(app.revoked_at)}", "muted", "block")
        return badge("Connected", "ok", "check")

    @object_action(
        "Disconnect", "gateway.change_connectedapp", look="danger", applies=lambda app: app.revoked_at is None
    )
    def disconnect(self, request: HttpRequest, row: ConnectedApp) -> None:
        app_disconnect(row, by=actor_of(request.user))
        self.message_user(request, f"Disconnected {row}.", messages.SUCCESS)
