"""Form fields for settings typed as text: prices, one line per model (`name: input, output`, per million tokens), and
upstreams, the section `upstreams` of the agents file as YAML. Both are validated like the agents file."""

from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from django import forms
from django.core.exceptions import ValidationError
from pydantic import ValidationError as SchemaError
from unfold.widgets import UnfoldAdminTextareaWidget

from gateway.agents.file import parse
from gateway.agents.settings import AgentsFile, Price
from gateway.services import upstream_values
from memories.errors import InvalidRequest

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
        wrong = "is less than 0" if item["type"] == "greater_than_equal" else "is not a number"
        yield f"the {kind} price of {name}, “{item['input']}”, {wrong}"


def _plain(number: float) -> str:
    return repr(int(number)) if float(number).is_integer() else repr(number)


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
        if not text.strip():
            return {}
        try:
            # Indentation turns the text into a section of the agents file.
            lines = "\n".join(f"  {line}" for line in text.splitlines())
            return upstream_values(parse(f"upstreams:\n{lines}\n"))
        except InvalidRequest as error:
            raise ValidationError(str(error).removesuffix(" Nothing was applied.")) from None


def upstreams_text(stored: Mapping[str, Any]) -> str:
    """Return stored upstreams as the field's text, sorted by name."""
    return yaml.safe_dump(dict(stored), allow_unicode=True) if stored else ""
