"""The form of a memory, with the fields that the service accepts. If the service refuses a value, the form shows its
error beside the field; a secret is not shown again."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminExpandableTextareaWidget, UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

import scanning
from memories.admin.badges import TARGETS
from memories.admin.forms import RefusableForm
from memories.errors import BlockedByScan, DomainError, InvalidRequest, OverBudget, TooLarge
from memories.json_input import read_json
from memories.limits import KEYWORD_LENGTH, KEYWORDS_GIVEN
from memories.metadata import clean_metadata
from memories.models import Memory
from memories.services import MemoryFields

_METADATA_TEXT = 20_000  # characters of metadata as JSON, enough even if all of it is escaped


class MemoryForm(RefusableForm):
    """The form of a memory. `version` guards against lost updates."""

    content = forms.CharField(
        widget=UnfoldAdminExpandableTextareaWidget(attrs={"rows": 3}), help_text="The old words stay in the history."
    )
    target = forms.ChoiceField(label="About", choices=list(TARGETS.items()), widget=UnfoldAdminSelectWidget)
    keywords = forms.CharField(
        required=False,
        widget=UnfoldAdminTextInputWidget,
        max_length=KEYWORDS_GIVEN * KEYWORD_LENGTH,
        help_text="Other words to find it by, separated by commas. Never sent to a model.",
    )
    metadata = forms.CharField(
        required=False,
        widget=UnfoldAdminExpandableTextareaWidget(attrs={"rows": 2}),
        max_length=_METADATA_TEXT,
        help_text='Strings by key, as JSON: {"source": "crm"}. For programs; never sent to a model.',
    )
    version = forms.IntegerField(required=False, widget=forms.HiddenInput)

    class Meta:
        model = Memory
        fields = ("content", "target", "category", "keywords", "metadata", "pinned", "expires_at", "book")

    def __init__(self, data: Any = None, *args: Any, **kwargs: Any) -> None:
        memory: Memory | None = kwargs.get("instance")
        initial = kwargs.setdefault("initial", {})
        if memory is not None and memory.pk and memory.number:
            metadata = json.dumps(memory.metadata, ensure_ascii=False) if memory.metadata else ""
            initial.update(keywords=", ".join(memory.keywords), metadata=metadata, version=memory.version)
        if data is not None and isinstance(self.refusal, BlockedByScan) and _has_secret(data):
            data = data.copy()
            data["content"] = memory.content if memory is not None else ""
            for name in ("keywords", "metadata"):
                data[name] = initial.get(name, "")
        super().__init__(data, *args, **kwargs)

    def clean_keywords(self) -> list[str]:
        return [word.strip() for word in str(self.cleaned_data["keywords"]).split(",") if word.strip()]

    def clean_metadata(self) -> dict[str, str]:
        """Parse the metadata. An empty field means no metadata."""
        typed = str(self.cleaned_data["metadata"]).strip()
        try:
            return clean_metadata(read_json(typed, what="Metadata", repair=True) if typed else {})
        except InvalidRequest as error:
            raise forms.ValidationError(str(error)) from None

    def field_of(self, refusal: DomainError) -> str | None:
        about_words = isinstance(refusal, BlockedByScan | OverBudget | TooLarge)
        return "content" if about_words and "content" in self.fields else super().field_of(refusal)

    def wanted(self) -> MemoryFields:
        """Return the changed fields for the service."""
        values = {name: self.cleaned_data[name] for name in self.changed_data if name not in {"version", "book"}}
        if "expires_at" in values and values["expires_at"] is None:
            values["clear_expiry"] = True
        return MemoryFields(**values)


def _has_secret(data: Mapping[str, Any]) -> bool:
    """Whether there is a secret in the typed words. A refusal may name another rule first."""
    words = [str(data.get(name, "")) for name in ("content", "keywords", "metadata")]
    with suppress(InvalidRequest):  # escapes may hide a secret in the JSON
        words += clean_metadata(read_json(words[2], what="Metadata", repair=True) if words[2] else {}).values()
    return scanning.scan(words[0], words[1:]).has_secret
