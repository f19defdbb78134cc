"""Agents in the admin: a form generated from the settings' schema, saved by the same service as the agents file, and
“Try it”, which sends a message to the saved agent and shows the answer, as in the first turn of a temporary session. A
trial reads and writes no memory, stores no session, run or message, and does not count towards limits."""

import time
from typing import Any

from asgiref.sync import async_to_sync
from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST
from pydantic import ValidationError
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from gateway.admin.schema_form import SettingsAdmin, schema_errors, schema_fields, schema_initial, schema_values
from gateway.agents.contradictions import agent_warnings
from gateway.agents.model_choice import agent_target
from gateway.agents.rows import agent_settings
from gateway.agents.settings import AgentSettings, AgentsFile, as_list
from gateway.models import Agent
from gateway.requests import request_id
from gateway.services import agent_save
from gateway.steps import ask
from gateway.upstream import is_demo
from memories.admin.access import action_record
from memories.admin.columns import column, moment_column
from memories.admin.forms import GuardedForm, RefusableForm
from memories.audit.log import Action
from memories.errors import DomainError
from memories.number_words import counted

TRIAL_SECONDS = 60
MAX_TRIAL_CHARS = 8000  # maximum length of a message to try
_SECTIONS = (
    ("Model", ("model", "upstream", "parameters", "instructions", "context_token_limit")),
    ("Memory", ("tools", "book", "memory_search")),
)


class _AgentForm(GuardedForm, RefusableForm):
    name = forms.CharField(
        max_length=64,
        widget=UnfoldAdminTextInputWidget,
        help_text="What clients send as model. It cannot be changed later.",
    )

    class Meta:
        model = Agent
        fields = ("name",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        agent: Agent | None = kwargs.get("instance")
        if agent is not None:
            kwargs["initial"] = {**schema_initial(AgentSettings, agent.settings), **kwargs.get("initial", {})}
        super().__init__(*args, **kwargs)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        name = self.instance.name or str(cleaned.get("name", ""))
        try:
            AgentsFile.model_validate({"agents": {name: self.settings()}})
        except ValidationError as error:
            for field, message in schema_errors(error, skip=2):
                field_name = "name" if field == "[key]" else field
                self.add_error(field_name if field_name in self.fields else None, message)
        return cleaned

    def settings(self) -> dict[str, Any]:
        """Return the submitted settings as the service expects them."""
        return schema_values(AgentSettings, self.cleaned_data)


AgentForm: type[_AgentForm] = type("AgentForm", (_AgentForm,), dict(schema_fields(AgentSettings)))


class TrialForm(forms.Form):
    message = forms.CharField(
        max_length=MAX_TRIAL_CHARS,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3, "aria-describedby": "trial-note"}),
        error_messages={
            "required": "Type a message first.",
            "max_length": f"A message to try has at most {MAX_TRIAL_CHARS:,} characters.",
        },
    )


def _fieldsets() -> tuple[tuple[str | None, dict[str, Any]], ...]:
    """Assign every setting to one section; those not named elsewhere go to Memory."""
    names = list(AgentSettings.model_fields)
    named = {name for _, section in _SECTIONS for name in section}
    reviews = tuple(name for name in names if name.startswith("memory_review_"))
    limits = tuple(name for name in names if name.endswith("_char_limit"))
    rest = tuple(name for name in names if name not in named and name not in reviews and name not in limits)
    model, memory = _SECTIONS
    sections = (model, (memory[0], memory[1] + rest), ("Reviews", reviews), ("Budgets", limits))
    return ((None, {"fields": ("name", "state")}), *((title, {"fields": fields}) for title, fields in sections))


def _default_model() -> str:
    return "demo model" if is_demo() else f"{settings.DAYBOOK_MODEL} (default)"


@admin.register(Agent)
class AgentAdmin(SettingsAdmin):
    """Named configurations. Only `agents delete` deletes one that has no sessions, whose transcripts refer to it."""

    change_action = Action.SETTINGS_CHANGE
    form = AgentForm
    change_form_template = "admin/gateway/agent/change_form.html"
    list_display = ("name", "model_name", "book", "memory", "reviews", "version", "changed")
    search_fields = ("name", "book")
    ordering = ("name",)
    fieldsets = _fieldsets()
    changed = moment_column("updated_at", "Changed")
    model_name = column("Model", lambda agent: ", ".join(as_list(agent_settings(agent).model)) or _default_model())

    @admin.display(description="Memory")
    def memory(self, agent: Agent) -> str:
        settings = agent_settings(agent)
        parts = ["tools"] * settings.memory_tools + ["injected"] * settings.inject_memories
        return ", ".join(parts) or "off"

    @admin.display(description="Reviews")
    def reviews(self, agent: Agent) -> str:
        settings = agent_settings(agent)
        every, pause = settings.memory_review_interval, settings.memory_review_idle_minutes
        turns = ["after every turn" if every == 1 else f"after every {every} turns"] * bool(every)
        idle = [f"after a pause of {counted(pause, 'minute')}"] * bool(pause)
        return ", ".join([*turns, *idle]) or "off"

    def settings_of(self, row: Agent) -> dict[str, Any]:
        return agent_settings(row).model_dump(mode="json")

    def get_readonly_fields(self, request: HttpRequest, obj: Agent | None = None) -> tuple[str, ...]:
        return ("name",) if obj else ()

    def save_model(self, request: HttpRequest, obj: Agent, form: Any, change: bool) -> None:
        """Raises InvalidRequest, which the form shows."""
        agent = agent_save(obj.name, form.settings())
        obj.pk = agent.pk
        for sentence in agent_warnings(agent_settings(agent)):
            self.message_user(request, sentence, messages.WARNING)

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
    """Send a message to the agent as saved, for at most TRIAL_SECONDS, with its instructions but without our tools,
    which are about memory. Return the answer for the template. Raises DomainErrors."""
    checked = agent_settings(agent)
    target = agent_target(checked)
    instructions = [{"role": "system", "content": checked.instructions}] if checked.instructions else []
    started = time.monotonic()
    result = await ask(
        target,
        [*instructions, {"role": "user", "content": message}],
        seconds=min(TRIAL_SECONDS, settings.RUN_SECONDS),
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
        "trial_seconds": TRIAL_SECONDS,
    }
