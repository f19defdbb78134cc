"""The form of a memory: exactly what the service takes. The service has the last word: what it refuses
comes back as an error beside the field, and a secret is not shown again."""

from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminExpandableTextareaWidget, UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from memories.admin.badges import TARGETS
from memories.admin.refusals import RefusableForm
from memories.errors import BlockedByScan, DomainError, OverBudget, TooLarge
from memories.limits import KEYWORD_LENGTH, KEYWORDS_GIVEN
from memories.models import Memory
from memories.services import MemoryFields


class MemoryForm(RefusableForm):
    """Content, target, category, keywords, pin and expiry; `version` guards against lost updates."""

    content = forms.CharField(
        widget=UnfoldAdminExpandableTextareaWidget(attrs={"rows": 3}),
        help_text="The old words stay in the history.",
    )
    target = forms.ChoiceField(label="About", choices=list(TARGETS.items()), widget=UnfoldAdminSelectWidget)
    keywords = forms.CharField(
        required=False,
        widget=UnfoldAdminTextInputWidget,
        max_length=KEYWORDS_GIVEN * KEYWORD_LENGTH,
        help_text="Words that only the search reads, separated by commas.",
    )
    version = forms.IntegerField(required=False, widget=forms.HiddenInput)

    class Meta:
        model = Memory
        fields = ("content", "target", "category", "keywords", "pinned", "expires_at", "book")

    def __init__(self, data: Any = None, *args: Any, **kwargs: Any) -> None:
        memory: Memory | None = kwargs.get("instance")
        initial = kwargs.setdefault("initial", {})
        if memory is not None and memory.pk and memory.number:
            initial.update(keywords=", ".join(memory.keywords), version=memory.version)
        if (
            data is not None
            and isinstance(self.refusal, BlockedByScan)
            and self.refusal.details.get("kind") == "secret"
        ):
            data = data.copy()
            data["content"] = memory.content if memory is not None else ""
            data["keywords"] = initial.get("keywords", "")
        super().__init__(data, *args, **kwargs)

    def clean_keywords(self) -> list[str]:
        return [word.strip() for word in str(self.cleaned_data["keywords"]).split(",") if word.strip()]

    def field_of(self, refusal: DomainError) -> str | None:
        about_words = isinstance(refusal, BlockedByScan | OverBudget | TooLarge)
        return "content" if about_words and "content" in self.fields else super().field_of(refusal)

    def wanted(self) -> MemoryFields:
        """Return what was changed, as the service takes it."""
        values = {name: self.cleaned_data[name] for name in self.changed_data if name not in {"version", "book"}}
        if "expires_at" in values and values["expires_at"] is None:
            values["clear_expiry"] = True
        return MemoryFields(**values)
