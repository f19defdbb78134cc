"""Connected apps in the admin: which app may use whose book, and a button that disconnects it. The OAuth library's own
admin pages are unregistered, since they could show and change clients and tokens without our services."""

from django.apps import apps
from django.contrib import admin, messages
from django.http import HttpRequest
from django.utils.safestring import SafeString

from gateway.admin.keys import KeyStateFilter
from gateway.models import ConnectedApp
from gateway.oauth.connections import app_disconnect
from memories.admin.badges import badge, moment
from memories.admin.base import ReadOnlyAdmin
from memories.admin.columns import column, moment_column
from memories.admin.filters import OWNER_FILTER
from memories.admin.object_actions import ObjectActionAdmin, object_action
from memories.audit.log import actor_of

_LIBRARY_MODELS = apps.get_app_config("oauth2_provider").get_models()
admin.site.unregister([model for model in _LIBRARY_MODELS if admin.site.is_registered(model)])


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
