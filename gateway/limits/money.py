"""Computes the cost of tokens, and collects the names of models without a price."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import FloatField, Sum
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from gateway.agents.settings import Price

_MILLION = 1_000_000
_MAX_NAMED = 5


@dataclass(slots=True)
class Money:
    """Prices by model. Collects models without a price whose cost is requested."""

    prices: Mapping[str, Price]
    _unpriced: set[str] = field(default_factory=set)

    @property
    def known(self) -> bool:
        """True if any model has a price; otherwise no money is shown."""
        return bool(self.prices)

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The names of some models that were used and have no price."""
        return tuple(sorted(self._unpriced)[:_MAX_NAMED])

    def cost(self, model: str, total: float | None, written: float | None) -> float:
        """Return the cost of a model's tokens, in the currency of the prices; 0 if it has no price. `total` and
        `written` are as in the columns of `token_sums`: all tokens, and those that the model wrote."""
        price, total, written = self.prices.get(model), total or 0, written or 0
        if price is None:
            if total and model:
                self._unpriced.add(model)
            return 0.0
        return cost_of(price, max(0, total - written), written)


def cost_of(price: Price, read: float, written: float) -> float:
    """Return the cost of tokens at a price."""
    return (read * price.input + written * price.output) / _MILLION


def token_sums() -> dict[str, Sum]:
    """Return expressions for `annotate` on rows with a `usage`: all `tokens`, and the `written` ones."""
    return {
        "tokens": Sum(Cast(KT("usage__total_tokens"), FloatField())),
        "written": Sum(Cast(KT("usage__completion_tokens"), FloatField())),
    }


def usage_words(usage: Any) -> str:
    """Return a stored usage as text: `1,480 tokens: 1,200 read, 280 written`."""
    usage = usage if isinstance(usage, Mapping) else {}
    total, read, written = (usage.get(f"{name}_tokens") for name in ("total", "prompt", "completion"))
    if not total:
        return "None reported"
    cached = figure_of(usage, "prompt_tokens_details", "cached_tokens")
    thought = figure_of(usage, "completion_tokens_details", "reasoning_tokens")
    parts = [f"{read:,} read" + (f" ({cached:,} from a cache)" if cached else "")] if read else []
    parts += [f"{written:,} written" + (f" ({thought:,} of them thinking)" if thought else "")] if written else []
    return f"{total:,} tokens" + (f": {', '.join(parts)}" if parts else "")


def figure_of(usage: Any, *path: str) -> int:
    """Return a number in a usage by the path to it, or 0 if it is missing or not an integer."""
    for name in path:
        usage = usage.get(name) if isinstance(usage, Mapping) else None
    return max(usage, 0) if isinstance(usage, int) else 0


def dollars(amount: float) -> str:
    """Return an amount in display form."""
    return "under $0.01" if 0 < amount < 0.01 else f"${amount:,.2f}"
