"""Admin pages that create rows with a secret, which is shown only in the response to the form."""

from typing import Any

from django.http import HttpRequest, HttpResponse

from memories.admin.base import ServiceAdmin
from memories.admin.object_actions import ObjectActionAdmin

_CONTEXT_KEY = "daybook.shown_once"


class ShownOnceAdmin(ObjectActionAdmin, ServiceAdmin):
    """A ModelAdmin whose `save_model` calls `show_once`. Its rows cannot be changed with the form."""

    forbidden = ("change", "delete")
    made_title = ""

    def show_once(self, request: HttpRequest, **context: Any) -> None:
        """Set the context for the model's `created.html`, which shows the secret."""
        request.META[_CONTEXT_KEY] = context

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        """Return the page with the secret. A Django message might be stored in a cookie."""
        template = f"admin/{self.opts.app_label}/{self.opts.model_name}/created.html"
        page = self.other_page(request, template, self.made_title, **request.META[_CONTEXT_KEY])
        page.headers["Cache-Control"] = "no-store"
        return page

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> None:
        """Do nothing: the service has already recorded it."""
