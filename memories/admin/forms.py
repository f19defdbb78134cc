"""Base classes of the admin's forms: some show the refusal of a service, some refuse to overwrite what others saved."""

from hashlib import sha256
from typing import Any

from django import forms

from memories.errors import DomainError

_OWN_CHANGES = {"password", "last_login"}  # which people change by signing in


class RefusableForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A form that shows the error of a service. Django saves after validation, but the service may still refuse: that
    rolls the transaction back, and the form is shown again."""

    # Set on the subclass that shows the form again.
    refusal: DomainError | None = None

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if self.refusal is not None:
            self.add_error(self.field_of(self.refusal), str(self.refusal))
        return cleaned

    def field_of(self, refusal: DomainError) -> str | None:
        """Return the name of the field that a refusal is about, or None for the whole form."""
        return refusal.param if refusal.param in self.fields else None


class GuardedForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A form that does not overwrite what somebody else has saved since it was opened. Its page shows `state`, a hash
    of the values that it opened with."""

    state = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if kwargs.get("instance") is not None:
            fields = {name: field for name, field in self.fields.items() if name not in _OWN_CHANGES}
            values = {name: field.prepare_value(self.initial.get(name)) for name, field in fields.items()}
            texts = [f"{n}={sorted(map(repr, v)) if isinstance(v, list) else repr(v)}" for n, v in values.items()]
            self.initial["state"] = sha256("\n".join(texts).encode()).hexdigest()

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned.get("state") and "state" in self.changed_data:
            self.add_error(None, "This was changed in the meantime. Open the page again before you save.")
        return cleaned
