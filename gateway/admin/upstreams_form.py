"""The settings of upstreams as an administrator types them: the section `upstreams` of the agents file, as YAML, read
by the same parser."""

from collections.abc import Mapping
from typing import Any

import yaml
from django import forms
from django.core.exceptions import ValidationError
from unfold.widgets import UnfoldAdminTextareaWidget

from gateway.agents.file import parse
from gateway.agents.settings import AgentsFile
from gateway.services import upstream_values
from memories.errors import InvalidRequest

_LONGEST = 100_000


class UpstreamsField(forms.CharField):
    """Returns `{name: {"dialect": …, "options": …}}`, the form of `upstreams` in the agents file."""

    def __init__(self) -> None:
        description = AgentsFile.model_fields["upstreams"].description
        super().__init__(
            required=False,
            label="Upstreams",
            max_length=_LONGEST,
            widget=UnfoldAdminTextareaWidget(attrs={"rows": 8, "spellcheck": "false"}),
            help_text=f"{description} Written as in the agents file; for example "
            "local: {dialect: vllm, options: {drop: [seed]}}",
        )

    def clean(self, value: Any) -> dict[str, Any]:
        text = super().clean(value)
        if not text.strip():
            return {}
        try:
            # Indented, it is a section of the file.
            lines = "\n".join(f"  {line}" for line in text.splitlines())
            return upstream_values(parse(f"upstreams:\n{lines}\n"))
        except InvalidRequest as error:
            raise ValidationError(str(error).removesuffix(" Nothing was applied.")) from None


def upstreams_text(stored: Mapping[str, Any]) -> str:
    """Stored settings as the field shows them, by name."""
    return yaml.safe_dump(dict(stored), allow_unicode=True) if stored else ""
