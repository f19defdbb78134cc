"""The form for the settings of consolidation, model roles, prices and upstreams. Two of its fields are typed as text:
prices, one line per model (`name: input, output`, per million tokens), and upstreams, the section `upstreams` of the
agents file as YAML. All are validated like the agents file."""

from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from pydantic import BaseModel
from pydantic import ValidationError as SchemaError
from unfold.widgets import UnfoldAdminTextareaWidget

from gateway.admin.schema_form import SettingsAdmin, schema_errors, schema_fields, schema_initial, schema_values
from gateway.agents.contradictions import missing_shared_upstream
from gateway.agents.file import read_yaml, sections
from gateway.agents.settings import AgentsFile, ConsolidationSettings, ModelRoles, Price
from gateway.models import Configuration
from gateway.services import configuration_save, settings_check, upstream_values
from memories.admin.forms import GuardedForm, RefusableForm
from memories.audit.log import Action
from memories.errors import InvalidRequest

_FORMS: dict[str, tuple[str, type[BaseModel]]] = {
    "memories": ("Consolidation", ConsolidationSettings),
    "model_roles": ("Model roles", ModelRoles),
}
_MAX_CHARS = 100_000  # of upstreams
_FORMAT_ERROR = "write the model’s name, a colon, and two prices: gpt-4o-mini: 0.15, 0.60"


class PricesField(forms.CharField):
    """A field whose value has the structure of `prices` in the agents file, `{model: {"input": …, "output": …}}`."""

    def __init__(self) -> None:
        description = AgentsFile.model_fields["prices"].description
        super().__init__(
            required=False,
            label="Prices",
            widget=UnfoldAdminTextareaWidget(attrs={"rows": 5, "spellcheck": "false"}),
            help_text=f"{description} One model per line: name: input, output, per million tokens; "
            "for example gpt-4o-mini: 0.15, 0.60",
        )

    def clean(self, value: Any) -> dict[str, dict[str, float]]:
        """Raises ValidationError with a sentence for each invalid line."""
        prices: dict[str, dict[str, float]] = {}
        errors: list[str] = []
        for number, line in enumerate(str(super().clean(value)).splitlines(), start=1):
            if not line.strip():
                continue
            try:
                name, price = _parse_line(line)
                if name in prices:
                    raise ValueError(f"{name} has a price already")
                prices[name] = price
            except ValueError as error:
                errors.append(f"Line {number}: {error}.")
        if errors:
            raise ValidationError(errors)
        return prices


def prices_text(prices: Mapping[str, Mapping[str, float]]) -> str:
    """Return stored prices as the field's text, sorted by name, since not every database keeps their order."""
    return "\n".join(
        f"{name}: {_plain(price['input'])}, {_plain(price['output'])}" for name, price in sorted(prices.items())
    )


def _parse_line(line: str) -> tuple[str, dict[str, float]]:
    """Return the model name and price of a line. Raises ValueError with a message for the form."""
    # Split at the last colon: names may contain colons (llama3:8b), prices cannot.
    name, colon, numbers = line.rpartition(":")
    parts = [part.strip() for part in numbers.split(",")]
    if not colon or not name.strip() or len(parts) != 2:
        raise ValueError(_FORMAT_ERROR)
    try:
        price = Price.model_validate(dict(zip(("input", "output"), parts, strict=True)))
    except SchemaError as error:
        raise ValueError("; ".join(_price_errors(name.strip(), error))) from None
    return name.strip(), price.model_dump(mode="json")


def _price_errors(name: str, error: SchemaError) -> Iterator[str]:
    for item in error.errors():
        kind = str(item["loc"][0])
        wrong = _WRONG.get(item["type"], "is not a number")
        yield f"the {kind} price of {name}, “{item['input']}”, {wrong}"


def _plain(number: float) -> str:
    return repr(int(number)) if float(number).is_integer() else repr(number)


_WRONG = {"greater_than_equal": "is less than 0", "less_than_equal": "is more than a billion"}


class UpstreamsField(forms.CharField):
    """A field whose value has the structure of `upstreams` in the agents file: `{name: {"dialect": …, …}}`."""

    def __init__(self) -> None:
        description = AgentsFile.model_fields["upstreams"].description
        super().__init__(
            required=False,
            label="Upstreams",
            max_length=_MAX_CHARS,
            widget=UnfoldAdminTextareaWidget(attrs={"rows": 8, "spellcheck": "false"}),
            help_text=f"{description} Written as in the agents file; for example "
            "local: {dialect: vllm, options: {drop: [seed]}}",
        )

    def clean(self, value: Any) -> dict[str, Any]:
        text = super().clean(value)
        try:
            return upstream_values(settings_check({"upstreams": read_yaml(text)}))
        except InvalidRequest as error:
            raise ValidationError(str(error).removesuffix(" Nothing was applied.")) from None


def upstreams_text(stored: Mapping[str, Any]) -> str:
    """Return stored upstreams as the field's text, sorted by name."""
    return yaml.safe_dump(dict(stored), allow_unicode=True) if stored else ""


class _ConfigurationForm(GuardedForm, RefusableForm):
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
            except SchemaError as error:
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
class ConfigurationAdmin(SettingsAdmin):
    """One form for all sections of the agents file except the agents, stored in the same rows."""

    forbidden = ("add", "delete")
    change_action = Action.SETTINGS_CHANGE
    form = ConfigurationForm
    fieldsets = (
        *(
            (title, {"fields": tuple(f"{section}_{name}" for name in model.model_fields)})
            for section, (title, model) in _FORMS.items()
        ),
        ("Prices", {"fields": ("prices", "state")}),
        ("Model servers", {"fields": ("upstreams",)}),
    )

    def settings_of(self, row: Configuration) -> dict[str, Any]:
        return sections()

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
        for sentence in missing_shared_upstream():
            self.message_user(request, sentence, messages.WARNING)
