"""Forms that save through a service. Django saves after validation, but the service may still refuse: that rolls the
transaction back, and the form is shown again with the service's error."""

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse

from memories.admin.base import DaybookAdmin
from memories.errors import DomainError

_REFUSAL = "daybook.refusal"


class RefusableForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A form that shows the error of a service."""

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


class ServiceAdmin(DaybookAdmin):
    """A page whose `save_model` calls a service and does not catch its DomainErrors; `form` is a RefusableForm.
    Django's own deletion is disabled, since it would bypass the service and delete histories: use actions instead."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> type[RefusableForm]:
        form: type[RefusableForm] = super().get_form(request, obj, change, **kwargs)
        refusal = request.META.get(_REFUSAL)
        return type(f"Refused{form.__name__}", (form,), {"refusal": refusal}) if refusal else form

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Show the row's page; if the service refuses a change, show it again with the refusal."""
        try:
            return super().changeform_view(request, *args, **kwargs)
        except DomainError as refusal:
            request.META[_REFUSAL] = refusal
            return super().changeform_view(request, *args, **kwargs)
