"""“Try it” on an agent's page: sends a message to the saved agent and shows the answer."""

from typing import Any

from asgiref.sync import async_to_sync
from django import forms
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST
from unfold.widgets import UnfoldAdminTextareaWidget

from gateway.agents.trial import MAX_CHARS, SECONDS, trial_run
from gateway.models import Agent
from gateway.requests import request_id
from memories.admin.access import action_record
from memories.admin.base import DaybookAdmin
from memories.errors import DomainError


class TrialForm(forms.Form):
    message = forms.CharField(
        max_length=MAX_CHARS,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3, "aria-describedby": "trial-note"}),
        error_messages={
            "required": "Type a message first.",
            "max_length": f"A message to try has at most {MAX_CHARS:,} characters.",
        },
    )


class TrialAdmin(DaybookAdmin):
    """Adds the trial to an agent's page for those who may change agents."""

    change_form_template = "admin/gateway/agent/change_form.html"

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.trial_view)
        return [path("<path:object_id>/try/", view, name="gateway_agent_try"), *super().get_urls()]

    def page_context(self, request: HttpRequest, row: Agent) -> dict[str, Any]:
        context = super().page_context(request, row)
        return {**context, **_offer(row)} if self.has_change_permission(request, row) else context

    @method_decorator(require_POST)
    def trial_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """POST `message`. Return the answer as a fragment for htmx, or else as a page. 404 for an unknown agent, 403
        without permission to change it."""
        agent = self.get_object(request, unquote(object_id))
        if agent is None:
            raise Http404
        if not self.has_change_permission(request, agent):
            raise PermissionDenied
        form = TrialForm(request.POST)
        context = {**_offer(agent), "trial_form": form, **self._outcome(request, agent, form)}
        if request.headers.get("HX-Request"):
            return TemplateResponse(request, "admin/gateway/agent/trial_result.html", context)
        page = {**self.admin_site.each_context(request), "opts": self.opts, "title": f"Try it: {agent}"}
        return TemplateResponse(request, "admin/gateway/agent/trial_page.html", {**page, **context, "agent": agent})

    def _outcome(self, request: HttpRequest, agent: Agent, form: TrialForm) -> dict[str, Any]:
        if not form.is_valid():
            return {"trial_error": form.errors["message"][0]}
        action_record(request, Agent, "Tried.", [agent])
        try:
            # async_to_sync runs it in the server's event loop, which holds the connections to the model server.
            ask = async_to_sync(trial_run)
            return {"trial": ask(agent, form.cleaned_data["message"], request_id=request_id.get())}
        except DomainError as refusal:
            return {"trial_error": str(refusal), "trial_code": refusal.code}


def _offer(agent: Agent) -> dict[str, Any]:
    return {
        "trial_form": TrialForm(),
        "trial_url": reverse("admin:gateway_agent_try", args=[agent.pk]),
        "trial_seconds": SECONDS,
    }
