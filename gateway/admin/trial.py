"""“Try it” on an agent's page: sends a message to the saved agent and shows the answer, as in the first turn of a
temporary session. A trial reads and writes no memory, stores no session, run or message, and does not count towards
limits."""

import time
from typing import Any

from asgiref.sync import async_to_sync
from django import forms
from django.conf import settings
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST
from unfold.widgets import UnfoldAdminTextareaWidget

from gateway.agents.model_choice import agent_target
from gateway.agents.rows import agent_settings
from gateway.models import Agent
from gateway.requests import request_id
from gateway.steps import ask
from memories.admin.access import action_record
from memories.admin.base import DaybookAdmin
from memories.errors import DomainError

SECONDS = 60
MAX_CHARS = 8000  # maximum length of a message


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
        template = "admin/gateway/agent/trial_page.html"
        return self.other_page(request, template, f"Try it: {agent}", agent=agent, **context)

    def _outcome(self, request: HttpRequest, agent: Agent, form: TrialForm) -> dict[str, Any]:
        if not form.is_valid():
            return {"trial_error": form.errors["message"][0]}
        action_record(request, Agent, "Tried.", [agent])
        try:
            # async_to_sync runs it in the server's event loop, which holds the connections to the model server.
            return {"trial": async_to_sync(_trial_run)(agent, form.cleaned_data["message"])}
        except DomainError as refusal:
            return {"trial_error": str(refusal), "trial_code": refusal.code}


async def _trial_run(agent: Agent, message: str) -> dict[str, Any]:
    """Send a message to the agent as saved, for at most SECONDS, with its instructions but without our tools, which are
    about memory. Return the answer for the template. Raises DomainErrors."""
    checked = agent_settings(agent)
    target = agent_target(checked)
    instructions = [{"role": "system", "content": checked.instructions}] if checked.instructions else []
    started = time.monotonic()
    result = await ask(
        target,
        [*instructions, {"role": "user", "content": message}],
        seconds=min(SECONDS, settings.RUN_SECONDS),
        parameters=checked.parameters,
        request_id=request_id.get(),
    )
    return {
        "answer": result.text,
        "model": result.model or target.model,
        "usage": result.usage,
        "finish_reason": result.finish_reason,
        "seconds": time.monotonic() - started,
    }


def _offer(agent: Agent) -> dict[str, Any]:
    return {
        "trial_form": TrialForm(),
        "trial_url": reverse("admin:gateway_agent_try", args=[agent.pk]),
        "trial_seconds": SECONDS,
    }
