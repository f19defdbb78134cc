"""Form fields made from the JSON Schema of a pydantic model, so that types, help texts, choices and limits are defined
only in the model. The model also checks the values, so the form and the agents file accept the same."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.utils.html import escape
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

# The only pattern in the settings is the one for names.
_NAME_WORDS = "A name has at most 64 letters, digits, dots, hyphens and underscores, and starts with a letter or digit."
# Texts that may be longer than this get a text area.
_LINE = 1000


def schema_fields(model: type[BaseModel], prefix: str = "") -> dict[str, forms.Field]:
    """Return a form field for each field of the model, by `prefix` and name, in the model's order."""
    schema = model.model_json_schema(by_alias=False)
    return {
        f"{prefix}{name}": _field(name, part, schema.get("$defs", {})) for name, part in schema["properties"].items()
    }


def schema_values(model: type[BaseModel], cleaned: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the values of a form in the form that the model takes, without fields that failed."""
    schema = model.model_json_schema(by_alias=False)
    return {
        name: _given(part, cleaned[f"{prefix}{name}"])
        for name, part in schema["properties"].items()
        if f"{prefix}{name}" in cleaned
    }


def schema_initial(model: type[BaseModel], stored: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the initial values of the form: the stored ones, and the model's defaults."""
    values = model.model_validate(dict(stored)).model_dump(mode="json")
    return {f"{prefix}{name}": _shown(value) for name, value in values.items()}


def schema_errors(error: ValidationError, skip: int = 0) -> Iterable[tuple[str, str]]:
    """Return (field, message) for each error of the model; `skip` parts of its path lead to the field."""
    for item in error.errors():
        path = [str(part) for part in item["loc"][skip:]]
        named = item["type"] == "string_pattern_mismatch"
        yield (path[0] if path else ""), _NAME_WORDS if named else item["msg"].removeprefix("Value error, ")


def _given(part: Mapping[str, Any], value: Any) -> Any:
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


def _shown(value: Any) -> Any:
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
    longest = part.get("maxLength")
    widget = UnfoldAdminExpandableTextareaWidget if longest and longest > _LINE else UnfoldAdminTextInputWidget
    return forms.CharField(**common, max_length=longest, widget=widget)


def _help(part: Mapping[str, Any]) -> str:
    described = str(part.get("description", ""))
    return f"{described} Several are separated by commas." if _is_text_or_list(part) else described


def _kinds(part: Mapping[str, Any], definitions: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the choices for a list of objects that differ by their `type`."""
    item = definitions[part["items"]["$ref"].rsplit("/", 1)[-1]]["properties"]["type"]
    kinds = item.get("enum") or [item["const"]]
    return [(kind, item.get("description", kind)) for kind in kinds]
