"""Rows that are made here with a secret: the answer to the form shows it, and nothing does so again."""

from typing import Any

from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from memories.admin.object_actions import ObjectActionAdmin
from memories.admin.refusals import ServiceAdmin

_SHOWN = "daybook.shown_once"


class ShownOnceAdmin(ObjectActionAdmin, ServiceAdmin):
    """A page whose `save_model` calls `show_once`; rows are never changed with the form, and never deleted."""

    made_title = ""

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def show_once(self, request: HttpRequest, **shown: Any) -> None:
        """Have the answer show this: it is the context of the model's `created.html`."""
        request.META[_SHOWN] = shown

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        """The secret, in this answer only: a message would travel in a cookie."""
        context = {**self.admin_site.each_context(request), "opts": self.opts, "title": self.made_title}
        template = f"admin/{self.opts.app_label}/{self.opts.model_name}/created.html"
        page = TemplateResponse(request, template, context | request.META[_SHOWN])
        page.headers["Cache-Control"] = "no-store"
        return page

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> None:
        """Add nothing: the service has recorded it."""
