"""Agents in the admin: a form generated from the settings' schema, saved by the same service as the agents file."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.http import HttpRequest
from pydantic import ValidationError
from unfold.widgets import UnfoldAdminTextInputWidget

from gateway.admin.schema_form import schema_errors, schema_fields, schema_initial, schema_values
from gateway.admin.trial import TrialAdmin
from gateway.agents.contradictions import agent_contradictions
from gateway.agents.rows import agent_settings
from gateway.agents.settings import AgentSettings, AgentsFile, as_list
from gateway.models import Agent
from gateway.services import agent_save
from memories.admin.base import RefusableForm, ServiceAdmin
from memories.admin.columns import column, moment_column
from memories.audit.log import Action
from memories.number_words import counted

_SECTIONS = (
    ("Model", ("model", "upstream", "parameters", "instructions", "context_token_limit")),
    ("Memory", ("tools", "book", "memory_search")),
)


class _AgentForm(RefusableForm):
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


def _fieldsets() -> tuple[tuple[str | None, dict[str, Any]], ...]:
    """Assign every setting to one section; those not named elsewhere go to Memory."""
    names = list(AgentSettings.model_fields)
    named = {name for _, section in _SECTIONS for name in section}
    reviews = tuple(name for name in names if name.startswith("memory_review_"))
    limits = tuple(name for name in names if name.endswith("_char_limit"))
    rest = tuple(name for name in names if name not in named and name not in reviews and name not in limits)
    model, memory = _SECTIONS
    sections = (model, (memory[0], memory[1] + rest), ("Reviews", reviews), ("Budgets", limits))
    return ((None, {"fields": ("name",)}), *((title, {"fields": fields}) for title, fields in sections))


@admin.register(Agent)
class AgentAdmin(TrialAdmin, ServiceAdmin):
    """Named configurations. An agent with sessions cannot be deleted, since their transcripts refer to it."""

    change_action = Action.SETTINGS_CHANGE
    form = AgentForm
    list_display = ("name", "model_name", "book", "memory", "reviews", "version", "changed")
    search_fields = ("name", "book")
    ordering = ("name",)
    fieldsets = _fieldsets()
    changed = moment_column("updated_at", "Changed")
    model_name = column(
        "Model", lambda agent: ", ".join(as_list(agent_settings(agent).model)) or f"{settings.DAYBOOK_MODEL} (default)"
    )

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

    def get_readonly_fields(self, request: HttpRequest, obj: Agent | None = None) -> tuple[str, ...]:
        return ("name",) if obj else ()

    def save_model(self, request: HttpRequest, obj: Agent, form: Any, change: bool) -> None:
        """Raises InvalidRequest, which the form shows."""
        agent = agent_save(obj.name, form.settings())
        obj.pk = agent.pk
        for sentence in agent_contradictions(agent_settings(agent)):
            self.message_user(request, sentence, messages.WARNING)
