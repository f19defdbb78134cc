"""Workers in the admin, and the form for the settings of consolidation, model roles, prices and upstreams."""

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from pydantic import BaseModel, ValidationError

from gateway.admin.schema_form import schema_errors, schema_fields, schema_initial, schema_values
from gateway.admin.settings_fields import PricesField, UpstreamsField, prices_text, upstreams_text
from gateway.agents.settings import ConsolidationSettings, ModelRoles
from gateway.models import Configuration, Worker
from gateway.services import configuration_save
from memories.admin.badges import badge
from memories.admin.base import ReadOnlyAdmin, RefusableForm, ServiceAdmin
from memories.admin.columns import column, moment_column
from memories.audit.log import Action

# A worker sends a heartbeat every few seconds; after this long without one it counts as gone.
HEARTBEAT_TIMEOUT = timedelta(minutes=1)
_FORMS: dict[str, tuple[str, type[BaseModel]]] = {
    "memories": ("Consolidation", ConsolidationSettings),
    "model_roles": ("Model roles", ModelRoles),
}


@admin.register(Worker)
class WorkerAdmin(ReadOnlyAdmin):
    """Worker processes and their heartbeats."""

    list_display = ("name", "state", "started", "beat")
    started = moment_column("started_at", "Started")
    beat = moment_column("beat_at", "Last heartbeat")
    name = column("Worker", str)

    @admin.display(description="State")
    def state(self, worker: Worker) -> SafeString:
        alive = timezone.now() - worker.beat_at < HEARTBEAT_TIMEOUT
        return badge("Running", "ok", "check") if alive else badge("No heartbeat", "warn", "schedule")


class _ConfigurationForm(RefusableForm):
    prices = PricesField()
    upstreams = UpstreamsField()

    class Meta:
        model = Configuration
        fields = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        sections = [*_FORMS, "prices", "upstreams"]
        stored = dict(Configuration.objects.filter(section__in=sections).values_list("section", "value"))
        initial: dict[str, Any] = {
            "prices": prices_text(stored.get("prices", {})),
            "upstreams": upstreams_text(stored.get("upstreams", {})),
        }
        for section, (_, model) in _FORMS.items():
            initial |= schema_initial(model, stored.get(section, {}), f"{section}_")
        kwargs["initial"] = {**initial, **kwargs.get("initial", {})}
        super().__init__(*args, **kwargs)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        for section, (_, model) in _FORMS.items():
            try:
                model.model_validate(self.part(section))
            except ValidationError as error:
                for field, message in schema_errors(error):
                    field_name = f"{section}_{field}"
                    self.add_error(field_name if field_name in self.fields else None, message)
        return cleaned

    def part(self, section: str) -> dict[str, Any]:
        """Return the submitted values of one section."""
        return schema_values(_FORMS[section][1], self.cleaned_data, f"{section}_")


_FIELDS = {
    name: field for section, (_, model) in _FORMS.items() for name, field in schema_fields(model, f"{section}_").items()
}
for _name, _field in _FIELDS.items():
    _field.label = (_field.label or "").removeprefix("Memories ")
ConfigurationForm: type[_ConfigurationForm] = type("ConfigurationForm", (_ConfigurationForm,), dict(_FIELDS))


@admin.register(Configuration)
class ConfigurationAdmin(ServiceAdmin):
    """One form for all sections of the agents file except the agents, stored in the same rows."""

    forbidden = ("add", "delete")
    change_action = Action.SETTINGS_CHANGE
    form = ConfigurationForm
    fieldsets = (
        *(
            (title, {"fields": tuple(f"{section}_{name}" for name in model.model_fields)})
            for section, (title, model) in _FORMS.items()
        ),
        ("Prices", {"fields": ("prices",)}),
        ("Model servers", {"fields": ("upstreams",)}),
    )

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Redirect to the only form."""
        return HttpResponseRedirect(reverse("admin:gateway_configuration_change", args=["memories"]))

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Configuration | None:
        """Return the form's row, unsaved if nothing was saved yet."""
        if object_id != "memories":
            return None
        return Configuration.objects.filter(section=object_id).first() or Configuration(section=object_id)

    def save_model(self, request: HttpRequest, obj: Configuration, form: Any, change: bool) -> None:
        """Raises InvalidRequest, which the form shows."""
        with transaction.atomic():
            for section, (_, model) in _FORMS.items():
                value = model.model_validate(form.part(section)).model_dump(mode="json", exclude_defaults=True)
                configuration_save(section, value)
            configuration_save("prices", form.cleaned_data["prices"])
            if "upstreams" in form.changed_data:
                configuration_save("upstreams", form.cleaned_data["upstreams"])
