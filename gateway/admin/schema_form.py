"""Generates form fields from the JSON Schema of a pydantic model, so that types, help texts, choices and limits are
defined only there. The model also validates the values, so the form and the agents file accept the same. People who may
not change the settings see them as text, since such fields are not columns of the row."""

from collections.abc import Iterable, Mapping
from typing import Any

import yaml
from django import forms
from django.conf import settings
from django.contrib import admin
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString
from pydantic import BaseModel, ValidationError
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminExpandableTextareaWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from gateway.services import setting_error
from memories.admin.base import ServiceAdmin
from memories.admin.columns import fieldset

# Fields that allow longer texts get a textarea.
_MAX_LINE = 1000


class SettingsAdmin(ServiceAdmin):
    """A page of settings. `settings_of` returns them as in the agents file."""

    read_only_fieldsets = (fieldset(None, "as_text"),)

    def settings_of(self, row: Any) -> dict[str, Any]:
        raise NotImplementedError

    @admin.display(description="Settings")
    def as_text(self, row: Any) -> SafeString:
        text = yaml.safe_dump(self.settings_of(row), sort_keys=False, allow_unicode=True)
        return format_html('<pre class="db-json">{}</pre>', text)


def schema_fields(model: type[BaseModel], prefix: str = "") -> dict[str, forms.Field]:
    """Return a form field for each field of the model, keyed by `prefix` and name, in the model's order."""
    schema = model.model_json_schema(by_alias=False)
    return {
        f"{prefix}{name}": _field(name, part, schema.get("$defs", {})) for name, part in schema["properties"].items()
    }


def schema_values(model: type[BaseModel], cleaned: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Convert cleaned form data to values for the model, without fields that failed validation."""
    schema = model.model_json_schema(by_alias=False)
    return {
        name: _model_value(part, cleaned[f"{prefix}{name}"])
        for name, part in schema["properties"].items()
        if f"{prefix}{name}" in cleaned
    }


def schema_initial(model: type[BaseModel], stored: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the initial form data: the stored values, or else the model's defaults."""
    values = model.model_validate(dict(stored)).model_dump(mode="json")
    return {f"{prefix}{name}": _form_value(value) for name, value in values.items()}


def schema_errors(error: ValidationError, skip: int = 0) -> Iterable[tuple[str, str]]:
    """Yield (field, message) for each validation error; `skip` is the number of path elements before the field."""
    for item in error.errors():
        path = [str(part) for part in item["loc"][skip:]]
        yield (path[0] if path else ""), f"{setting_error(item)}."


def _model_value(part: Mapping[str, Any], value: Any) -> Any:
    if part.get("type") == "array":
        return [{"type": kind} for kind in value]
    if part.get("type") == "object":
        return value or {}
    if _is_text_or_list(part):
        texts = [text.strip() for text in value.split(",")]
        return texts if len(texts) > 1 else texts[0]
    return value


def _is_text_or_list(part: Mapping[str, Any]) -> bool:
    return {form.get("type") for form in part.get("oneOf", ())} == {"string", "array"}


def _form_value(value: Any) -> Any:
    if isinstance(value, list):
        named = bool(value) and isinstance(value[0], str)
        return ", ".join(value) if named else [item["type"] for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _field(name: str, part: Mapping[str, Any], definitions: Mapping[str, Any]) -> forms.Field:
    common: dict[str, Any] = {
        "label": name.replace("_", " ").capitalize(),
        "help_text": escape(_help(part)),  # the admin shows help texts as HTML
        "required": False,
    }
    if "default" in part:
        common["initial"] = part["default"]
    if "enum" in part:
        choices = [(value, value) for value in part["enum"]]
        return forms.ChoiceField(**{**common, "required": True}, choices=choices, widget=UnfoldAdminSelectWidget)
    kind = part.get("type")
    if kind == "boolean":
        return forms.BooleanField(**common, widget=UnfoldBooleanSwitchWidget)
    if kind in {"integer", "number"}:
        limits: dict[str, Any] = {"min_value": part.get("minimum"), "max_value": part.get("maximum")}
        if kind == "integer":
            return forms.IntegerField(**{**common, "required": True}, **limits, widget=UnfoldAdminIntegerFieldWidget)
        return forms.FloatField(**{**common, "required": True}, **limits, widget=UnfoldAdminDecimalFieldWidget)
    if kind == "array":
        return forms.MultipleChoiceField(
            **common, choices=_kinds(part, definitions), widget=UnfoldAdminCheckboxSelectMultipleWidget
        )
    if kind == "object":
        return forms.JSONField(**{"initial": {}} | common, widget=UnfoldAdminExpandableTextareaWidget)
    max_length = part.get("maxLength")
    is_long = max_length and max_length > _MAX_LINE
    widget = UnfoldAdminExpandableTextareaWidget if is_long else UnfoldAdminTextInputWidget
    return forms.CharField(**common, max_length=max_length, widget=widget)


def _help(part: Mapping[str, Any]) -> str:
    described = str(part.get("description", ""))
    if "DAYBOOK_MODEL" in described:
        described += f" DAYBOOK_MODEL is {settings.DAYBOOK_MODEL}."
    return f"{described} Separate several with commas." if _is_text_or_list(part) else described


def _kinds(part: Mapping[str, Any], definitions: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the choices for a list of objects that are distinguished by `type`."""
    item = definitions[part["items"]["$ref"].rsplit("/", 1)[-1]]["properties"]["type"]
    kinds = item.get("enum") or [item["const"]]
    return [(kind, item.get("description", kind)) for kind in kinds]
