"""Buttons on a row's page that call a service. They are POST forms with a CSRF token: the theme's own detail actions
are links, and a link must not change anything."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST

from memories.admin.base import DaybookAdmin
from memories.errors import DomainError
from memories.selectors import row_by_id

Row = TypeVar("Row", bound=Model)
Method = TypeVar("Method", bound=Callable[..., HttpResponse | None])


@dataclass(frozen=True, slots=True)
class ObjectAction:
    """A button. `verb` is the name of its method."""

    verb: str
    label: str
    permission: str
    look: str
    applies: Callable[[Any], bool]


def object_action(
    label: str, permission: str, *, look: str = "plain", applies: Callable[[Any], bool] = lambda row: True
) -> Callable[[Method], Method]:
    """Turn a method of a page, which takes the request and the row, into a button. The method performs the action and
    shows a message; its DomainErrors are shown as messages. It may return a page to show in place of the row's.
    `permission` is `app.verb_model`; `look` is plain, primary
    or danger; `applies` tells whether a row's state allows the action."""

    def decorate(method: Method) -> Method:
        method.object_action = ObjectAction(method.__name__, label, permission, look, applies)  # type: ignore[attr-defined]
        return method

    return decorate


def posted_revision(request: HttpRequest, revisions: "QuerySet[Row]") -> Row:
    """Return the one of these revisions that a button of the history names. Raises Http404."""
    revision = row_by_id(revisions, request.POST.get("revision", ""))
    if revision is None:
        raise Http404
    return revision


class ObjectActionAdmin(DaybookAdmin):
    """A page with buttons for those `object_actions` that apply to the row and that the user may perform. They are the
    names of methods with `@object_action`, like Django's `actions`."""

    object_actions: ClassVar[tuple[str, ...]] = ()
    change_form_template = "admin/object_actions.html"

    @property
    def object_action_url_name(self) -> str:
        """The URL name of the view that actions are posted to."""
        return f"{self.opts.app_label}_{self.opts.model_name}_object_action"

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.object_action_view)
        return [path("<path:object_id>/action/", view, name=self.object_action_url_name), *super().get_urls()]

    @method_decorator(require_POST)
    def object_action_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Perform the action posted as `verb`. Answers 404 for an unknown verb, 403 without the permission."""
        verb = request.POST.get("verb")
        if verb not in self.object_actions:
            raise Http404
        perform = getattr(self, verb)
        if not request.user.has_perm(perform.object_action.permission):
            raise PermissionDenied
        row = self.get_object(request, unquote(object_id))
        if row is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        answer: HttpResponse | None = None
        try:
            answer = perform(request, row)
        except DomainError as refusal:
            self.message_user(request, str(refusal), messages.ERROR)
        change = f"admin:{self.opts.app_label}_{self.opts.model_name}_change"
        return answer or HttpResponseRedirect(reverse(change, args=[row.pk]))

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        actions = [getattr(self, verb).object_action for verb in self.object_actions]
        return {
            **super().page_context(request, row),
            "object_actions": [a for a in actions if request.user.has_perm(a.permission) and a.applies(row)],
            "object_action_url": reverse(f"admin:{self.object_action_url_name}", args=[row.pk]),
        }
