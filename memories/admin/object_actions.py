"""Buttons on a row's page that call a service. They are POST forms with a CSRF token: the theme's own detail actions
are links, and a link must not change anything."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST

from memories.admin.base import DaybookAdmin
from memories.errors import DomainError


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectAction:
    """A button. `permission` is `app.verb_model`; `look` is plain, primary or danger."""

    verb: str
    label: str
    permission: str
    look: str = "plain"


class ObjectActionAdmin(DaybookAdmin):
    """A page with buttons for those `object_actions` that apply to the row and that the user may perform."""

    object_actions: ClassVar[Sequence[ObjectAction]] = ()
    change_form_template = "admin/object_actions.html"

    def action_applies(self, row: Any, verb: str) -> bool:
        """Return True if the action applies to the row in its current state."""
        raise NotImplementedError

    def perform_action(self, request: HttpRequest, row: Any, verb: str) -> None:
        """Perform the action and show a message. Raises DomainErrors, which are shown as messages."""
        raise NotImplementedError

    def available_actions(self, request: HttpRequest, row: Any) -> list[ObjectAction]:
        return [
            action
            for action in self.object_actions
            if request.user.has_perm(action.permission) and self.action_applies(row, action.verb)
        ]

    @property
    def object_action_url_name(self) -> str:
        """The URL name of the view that actions are posted to."""
        return f"{self.opts.app_label}_{self.opts.model_name}_object_action"

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.object_action_view)
        return [path("<path:object_id>/action/", view, name=self.object_action_url_name), *super().get_urls()]

    @method_decorator(require_POST)
    def object_action_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Perform the action posted as `verb`. Answers 404 for an unknown row or verb, 403 without the permission."""
        row = self.get_object(request, unquote(object_id))
        action = next((action for action in self.object_actions if action.verb == request.POST.get("verb")), None)
        if row is None or action is None:
            raise Http404
        if not request.user.has_perm(action.permission):
            raise PermissionDenied
        try:
            self.perform_action(request, row, action.verb)
        except DomainError as refusal:
            self.message_user(request, str(refusal), messages.ERROR)
        return HttpResponseRedirect(
            reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_change", args=[row.pk])
        )

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        object_actions = {
            "object_actions": self.available_actions(request, row),
            "object_action_url": reverse(f"admin:{self.object_action_url_name}", args=[row.pk]),
        }
        return {**super().page_context(request, row), **object_actions}
