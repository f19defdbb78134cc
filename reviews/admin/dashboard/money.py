"""What tokens cost, by the prices that are set. A model without a price costs nothing here and is named."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.db.models import FloatField, Sum
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from gateway.agents.settings import Price

_MILLION = 1_000_000
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of one model: all of them, and those it wrote itself."""

    total: int
    written: int

    @classmethod
    def of(cls, total: float | None, written: float | None) -> "Tokens":
        """From the columns of `token_sums`."""
        return cls(int(total or 0), int(written or 0))


@dataclass(slots=True)
class Money:
    """Prices by model, and the models with tokens that had none."""

    prices: Mapping[str, Price]
    _without: set[str] = field(default_factory=set)

    @property
    def known(self) -> bool:
        """True if any model has a price; otherwise no money is shown."""
        return bool(self.prices)

    @property
    def unpriced(self) -> tuple[str, ...]:
        """Names of models that were used and have no price, some of them."""
        return tuple(sorted(self._without)[:_NAMED])

    def cost(self, model: str, tokens: Tokens) -> float:
        """Return the cost in the currency of the prices; 0 without a price."""
        price = self.prices.get(model)
        if price is None:
            if tokens.total and model:
                self._without.add(model)
            return 0.0
        return (max(0, tokens.total - tokens.written) * price.input + tokens.written * price.output) / _MILLION


def token_sums() -> dict[str, Sum]:
    """For `annotate` on rows with a `usage`: `tokens` and, of these, `written`."""
    return {
        "tokens": Sum(Cast(KT("usage__total_tokens"), FloatField())),
        "written": Sum(Cast(KT("usage__completion_tokens"), FloatField())),
    }


def dollars(amount: float) -> str:
    """Format an amount of money."""
    return "under $0.01" if 0 < amount < 0.01 else f"${amount:,.2f}"
